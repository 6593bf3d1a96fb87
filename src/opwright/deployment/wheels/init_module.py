"""The `__init__.py` of a wheel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opwright.deployment.wheels.optimizers import PlannedOptimizer
from opwright.deployment.wheels.planned import PlannedOperator
from opwright.version import VERSION

_IMPORTED = "from .runtime.packaged_optimizers import equip_all\n"
_EQUIPPED = "equip_all(reference, _folder, cpu_level)\n"


def init_module(package: str, planned: Sequence[PlannedOperator], optimizers: Sequence[PlannedOptimizer] = ()) -> str:
    """Write it.

    Args:
        package: What Python imports.
        planned: The operators in it.
        optimizers: The optimizers in it.
    """
    bound = [f'{each.short_name} = _operators["{each.short_name}"]' for each in planned]
    bound += [f"{each.name} = reference.{each.name}" for each in optimizers]
    names = [*(each.short_name for each in planned), *(each.name for each in optimizers)]
    listed = "\n".join(f"    {name}" for name in (*(each.name for each in planned), *names[len(planned) :]))
    exported = ", ".join(f'"{name}"' for name in sorted([*names, "cpu_level", "library"]))
    equipped = _EQUIPPED if optimizers else ""
    used = "Each is called like the function of the same name in" if planned else "Each is defined in"
    return f'''"""{kinds_of(planned, optimizers)} with kernels of their own, which need torch alone:

{listed}

{used} `reference`. Written by opwright {VERSION}.
"""

from pathlib import Path

from . import reference
from .runtime.package import load
{_IMPORTED if optimizers else ""}
_folder = Path(__file__).parent
_operators, cpu_level = load(_folder, reference)  # the level is that of the kernels loaded; None: references serve
{equipped}library = str(_folder / "lib" / "{package}.so")  # for torch.ops.load_library, and for programs of C++

''' + "\n".join([*bound, "", f"__all__ = [{exported}]", ""])


def kinds_of(operators: Sequence[Any], optimizers: Sequence[Any]) -> str:
    """What a wheel holds, in words."""
    return " and ".join([*(["operators"] if operators else []), *(["optimizers"] if optimizers else [])]).capitalize()
