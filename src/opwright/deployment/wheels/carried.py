"""The modules that every wheel carries: torch is all they need, and in the wheel they import each other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

_MODULES = (
    "opwright.binding.environment",
    "opwright.binding.dispatcher.results",
    "opwright.binding.autograd.redraw",
    "opwright.derivation.pull_back",
    "opwright.tracing.torch_hooks.functorch",
    "opwright.tracing.torch_hooks.memory_formats",
    "opwright.tracing.interface.memory",
    "opwright.tracing.interface.orders",
    "opwright.tracing.scalars.guards",
    "opwright.deployment.wheels.runtime.variant",
    *(
        f"opwright.deployment.wheels.runtime.{name}"
        for name in ("autograd", "dispatcher", "gpus", "gradients", "layouts", "package", "packaged", "stamp")
    ),
)
_IMPORT = re.compile(rf"^from ({'|'.join(map(re.escape, _MODULES))}) import", re.MULTILINE)


def carried_modules() -> Mapping[str, str]:
    """Return the text of each module as it stands in a wheel, by the name of its file."""
    package = _text("opwright.deployment.wheels.runtime")
    modules = {f"{name.rpartition('.')[2]}.py": _IMPORT.sub(_relative, _text(name)) for name in _MODULES}
    return {"__init__.py": package, **modules}


def _relative(statement: re.Match[str]) -> str:
    return f"from .{statement[1].rpartition('.')[2]} import"


def _text(module: str) -> str:
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text(encoding="utf-8")
