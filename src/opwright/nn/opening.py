"""Whether the forward of a module can run as written around parts, which are of other classes than the modules."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from torch import nn

from opwright.errors import NoKernel
from opwright.nn.cut import has_forward
from opwright.nn.part import is_special, why_not
from opwright.tracing.outside.purity import is_installed

_MOST_FUNCTIONS = 1000


def has_servable(module: nn.Module) -> bool:
    """Whether there are modules inside that can be served, and something that calls them."""
    inside = (inner for inner in module.modules() if inner is not module)
    return has_forward(module) and any(has_forward(inner) and why_not(inner) is None for inner in inside)


def why_closed(module: nn.Module) -> NoKernel | None:
    """Why the modules inside are not served while a forward runs as written; None if they can be."""
    if is_special(module):
        return NoKernel(f"{type(module).__name__} changes what a call does", hint="serve the modules inside of it")
    for function in _reached(module):
        if any("type" in code.co_names for code in _codes(function.__code__)):
            fact = f"{function.__qualname__} calls type(), for which parts that are served would be others"
            return NoKernel(fact, hint="write isinstance(), or serve the modules inside of it one by one")
    return None


def _reached(module: nn.Module) -> Iterator[FunctionType]:
    """The user's functions that the methods of a module can reach by the names in their code."""
    pending: list[Any] = [type(module), *vars(module).values()]
    seen = set[int]()
    while pending:
        value = pending.pop()
        if id(value) in seen or len(seen) > _MOST_FUNCTIONS:
            continue
        seen.add(id(value))
        match value:
            case functools.partial():
                pending.append(value.func)
            case MethodType() | staticmethod() | classmethod():
                pending.append(value.__func__)
            case property():
                pending.append(value.fget)
            case FunctionType() if not is_installed(value.__module__):
                yield value
                pending += _named_by(value)
            case type():
                own = (base for base in value.__mro__ if not is_installed(base.__module__))
                pending += [member for base in own for name, member in vars(base).items() if name != "__init__"]
            case nn.Module():
                pass
            case _ if not is_installed(type(value).__module__):
                pending.append(type(value))


def _named_by(function: FunctionType) -> Iterator[Any]:
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    for name in names & function.__globals__.keys():
        value = function.__globals__[name]
        if not isinstance(value, ModuleType):
            yield value
        elif not is_installed(value.__name__):
            yield from (vars(value)[inner] for inner in names & vars(value).keys())
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it is empty
            continue


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
