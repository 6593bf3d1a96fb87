"""The `__init__.py` of a wheel."""

from __future__ import annotations

from collections.abc import Sequence

from opwright.deployment.wheels.planned import PlannedOperator
from opwright.version import VERSION


def init_module(package: str, planned: Sequence[PlannedOperator]) -> str:
    """Write it.

    Args:
        package: What Python imports.
        planned: The operators in it.
    """
    names = [each.short_name for each in planned]
    listed = "\n".join(f"    {each.name}" for each in planned)
    exported = ", ".join(f'"{name}"' for name in sorted([*names, "cpu_level", "library"]))
    return f'''"""Operators with kernels of their own, which need torch alone:

{listed}

Each is called like the function of the same name in `reference`. Written by opwright {VERSION}.
"""

from pathlib import Path

from . import reference
from .runtime.package import load

_folder = Path(__file__).parent
_operators, cpu_level = load(_folder, reference)  # the level is that of the kernels loaded; None: references serve
library = str(_folder / "lib" / "{package}.so")  # for torch.ops.load_library, and for programs of C++

''' + "\n".join([*(f'{name} = _operators["{name}"]' for name in names), "", f"__all__ = [{exported}]", ""])
