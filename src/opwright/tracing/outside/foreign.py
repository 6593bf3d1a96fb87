"""Third-party libraries: constant, except for what they read from the environment.

A library's function changes with its version, not from call to call. Reads of environment variables, clocks or random
generators are found by the names in its code and in the functions it calls.
"""

from __future__ import annotations

import hashlib
import types
from collections.abc import Iterator
from dataclasses import dataclass

from opwright.tracing.outside.code.instructions import codes_in, named_by
from opwright.tracing.outside.hazards import Hazard
from opwright.tracing.outside.plain import is_plain, spelled
from opwright.tracing.outside.purity import answers_otherwise, is_installed

_MOST_FUNCTIONS = 200


@dataclass(frozen=True, slots=True)
class DeepInside:
    """What a function of a library reads.

    Attributes:
        hazards: Lines that read such things.
        functions: The function, and those that it calls.
        fact: A digest of its code and of that of the functions it calls; None if it uses other things.
    """

    hazards: tuple[Hazard, ...]
    functions: tuple[types.FunctionType, ...]
    fact: str | None


def read_deep_inside(function: types.FunctionType) -> DeepInside:
    """Search the code of a library's function and of those that it calls by name."""
    digest, hazards, is_known = hashlib.sha256(), list[Hazard](), True
    pending, seen, functions = [function], {id(function)}, list[types.FunctionType]()
    while pending:
        functions.append(current := pending.pop())
        code, globals_ = current.__code__, current.__globals__
        named = named_by(code)
        for inner in codes_in(code):
            digest.update(inner.co_code + repr((inner.co_names, inner.co_varnames)).encode())
        lines = named.environment_unknown.union(*named.environment.values())
        if lines:
            hazards.append(Hazard(code, lines, "an environment variable"))
        for name, at in named.globals.items():
            value = globals_.get(name)
            for asked in _asked(value, named.attributes):
                hazards.append(Hazard(code, at, f"the answer of {asked}"))
            if isinstance(value, types.FunctionType) and not is_installed(value.__globals__.get("__name__")):
                if id(value) not in seen and len(seen) < _MOST_FUNCTIONS:
                    seen.add(id(value))
                    pending.append(value)
            elif is_plain(value):
                digest.update(spelled(value).encode())
            else:
                is_known = is_known and is_installed(
                    getattr(value, "__module__", None) or getattr(value, "__name__", "")
                )
        is_known = is_known and not current.__closure__ and len(seen) < _MOST_FUNCTIONS
    return DeepInside(tuple(hazards), tuple(functions), digest.hexdigest() if is_known else None)


def _asked(value: object, attributes: frozenset[str]) -> Iterator[str]:
    """Python values whose answers may vary from call to call: the value, or members of it."""
    if isinstance(value, types.ModuleType) and is_installed(value.__name__):
        for name in attributes & vars(value).keys():
            member = vars(value)[name]
            if isinstance(member, (types.FunctionType, types.BuiltinFunctionType)) and answers_otherwise(member):
                yield f"{value.__name__}.{name}"
    elif isinstance(value, (types.FunctionType, types.BuiltinFunctionType)) and answers_otherwise(value):
        yield f"{value.__module__}.{value.__name__}"
