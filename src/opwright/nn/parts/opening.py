"""Whether the forward of a module can run as written around parts, which are of other classes than the modules."""

from __future__ import annotations

import dis
import functools
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from torch import nn

from opwright.errors import NoKernel
from opwright.nn.parts.cut import has_forward
from opwright.nn.parts.part import is_special, why_not
from opwright.tracing.outside.code.instructions import codes_in
from opwright.tracing.outside.purity import is_installed, module_of

_MOST_FUNCTIONS = 1000
_NEAR = 8  # instructions between `type` and what is done with the answer
_NOTHING = frozenset({"CACHE", "PRECALL", "PUSH_NULL", "NOP", "EXTENDED_ARG", "RESUME"})
_IMPLIED = (
    frozenset(  # methods that operators and calls run
        name
        for name in (*dir(int), *dir(list), *dir(dict), "__call__", "__post_init__", "__getattr__")
        if name[:2] == "__"
    )
    - frozenset(dir(object))
    | {"__init__", "__getattribute__"}
)


def has_servable(module: nn.Module) -> bool:
    """Whether there are modules inside that can be served, and something that calls them."""
    inside = (inner for inner in module.modules() if inner is not module)
    return has_forward(module) and any(has_forward(inner) and why_not(inner) is None for inner in inside)


def why_closed(module: nn.Module) -> NoKernel | None:
    """Why the modules inside are not served while a forward runs as written; None if they can be."""
    if is_special(module):
        return NoKernel(f"{type(module).__name__} changes what a call does", hint="serve the modules inside of it")
    for function in _reached(module):
        if any(map(_compares_types, codes_in(function.__code__))):
            fact = f"{function.__qualname__} may write `type(x) is …`, for which parts that are served would be others"
            return NoKernel(fact, hint="write isinstance() or ==, or serve the modules inside of it one by one")
    return None


def _reached(module: nn.Module) -> Iterator[FunctionType]:
    """The user's functions that the forward of a module can reach by the names in their code."""
    pending: list[Any] = [module.forward, *vars(module).values()]
    classes, names, seen = [type(module)], {"forward"}, set[int]()
    while pending and len(seen) <= _MOST_FUNCTIONS:
        value = pending.pop()
        if id(value) not in seen:
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
                    names |= _names_in(value)
                case type():
                    classes += [base for base in value.__mro__ if not is_installed(module_of(base))]
                case nn.Module():
                    pass
                case _ if not is_installed(module_of(type(value))):
                    pending.append(type(value))
        if not pending:  # methods whose names have been met by now, and those that Python calls without their names
            pending = [
                value
                for kind in classes
                for name, value in vars(kind).items()
                if id(value) not in seen
                if name in names | _IMPLIED and not (name == "__init__" and issubclass(kind, nn.Module))
            ]


def _names_in(function: FunctionType) -> frozenset[str]:
    return frozenset(name for code in codes_in(function.__code__) for name in code.co_names)


def _named_by(function: FunctionType) -> Iterator[Any]:
    names = _names_in(function)
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


@functools.lru_cache(maxsize=4096)
def _compares_types(code: CodeType) -> bool:
    """Whether code may write `type(x) is …`, at once or by a variable that holds the type."""
    if "type" not in code.co_names:
        return False
    steps = [step for step in dis.get_instructions(code) if step.opname not in _NOTHING]
    compared = [place for place, step in enumerate(steps) if step.opname == "IS_OP" and not _is_none(steps[place - 1])]
    for place, step in enumerate(steps):
        if step.argval == "type" and step.opname.startswith("LOAD"):
            is_kept = any(after.opname.startswith("STORE") for after in steps[place : place + _NEAR])
            if compared and (is_kept or any(place < other <= place + _NEAR for other in compared)):
                return True
    return False


def _is_none(step: dis.Instruction) -> bool:
    return step.opname == "LOAD_CONST" and step.argval is None
