"""The modules that every wheel carries: torch is all they need, and in the wheel they import each other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

# What every wheel has.
_OF_OPERATORS = (
    "opwright.introspection",
    "opwright.binding.environment",
    "opwright.binding.dispatcher.results",
    "opwright.binding.autograd.redraw",
    "opwright.derivation.pull_back",
    "opwright.tracing.torch_hooks.functorch",
    "opwright.tracing.torch_hooks.layouts.memory_formats",
    "opwright.tracing.interface.memory",
    "opwright.tracing.interface.orders",
    "opwright.tracing.scalars.guards",
    "opwright.deployment.wheels.runtime.variant",
    *(
        f"opwright.deployment.wheels.runtime.{name}"
        for name in (
            "autograd", "dispatcher", "gpus", "gradients", "layouts", "package", "packaged", "registered", "stamp",
            "unserved",
        )
    ),
)  # fmt: skip
# What a wheel with optimizers has besides.
_OF_OPTIMIZERS = (
    "opwright.errors",
    "opwright.tracing.interface.place",
    "opwright.tracing.torch_hooks.spread",
    *(
        f"opwright.optim.{name}"
        for name in (
            "classes", "definition", "examine", "factor", "first_values", "functional", "hyper", "kinds", "options",
            "rounding", "signatures", "stepping", "serving.buckets", "serving.entries", "serving.kernels",
            "serving.parts", "serving.plan", "serving.skips", "serving.tables", "shipping.packaged_optimizers",
        )
    ),
)  # fmt: skip
_IMPORT = re.compile(rf"^from ({'|'.join(map(re.escape, (*_OF_OPERATORS, *_OF_OPTIMIZERS)))}) import", re.MULTILINE)


def carried_modules(*, with_optimizers: bool) -> Mapping[str, str]:
    """Return the text of each module as it stands in a wheel, by the name of its file."""
    package = _text("opwright.deployment.wheels.runtime")
    names = (*_OF_OPERATORS, *(_OF_OPTIMIZERS if with_optimizers else ()))
    modules = {f"{name.rpartition('.')[2]}.py": with_neighbours(_text(name), ".") for name in names}
    return {"__init__.py": package, **modules}


def needed_for(module: str) -> Mapping[str, str]:
    """Return the text of a carried module, and of those that it imports, as they stand in one folder."""
    found: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = _text(name)
            waiting += _IMPORT.findall(found[name])
    return {f"{name.rpartition('.')[2]}.py": with_neighbours(found[name], ".") for name in sorted(found)}


def with_neighbours(text: str, folder: str) -> str:
    """A module that imports carried ones from a folder of its package, such as "." or ".runtime."."""
    return _IMPORT.sub(lambda found: f"from {folder}{found[1].rpartition('.')[2]} import", text)


def _text(module: str) -> str:
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text(encoding="utf-8")
