"""A digest of everything a reference's behaviour depends on, so that what was derived from it can be found again.

It covers the bytecode and constants of the function and of every function of the user's that it reaches, defaults,
closures, and the plain values among its globals. Functions of installed packages stand for themselves by name: the
version of torch is part of every key. Where something else is reached (an object, a tensor, a list that may change),
there is no fingerprint, and the reference is traced in every process.
"""

from __future__ import annotations

import builtins
import hashlib
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import torch
from torch._ops import OpOverload, OpOverloadPacket

# Objects of torch and NumPy that are what their names say, and hold nothing else.
_NAMED = (OpOverload, OpOverloadPacket, numpy.ufunc, types.MethodDescriptorType, types.WrapperDescriptorType)
_PLAIN = (int, float, complex, str, bytes, bool, type(None), type(...), torch.dtype, torch.device)


def fingerprint(function: Callable[..., Any]) -> str | None:
    """Digest a function; None if it depends on something whose value cannot be pinned down."""
    digest = hashlib.sha256()
    try:
        for part in _parts(function, set()):
            digest.update(f"{len(part)}:{part}".encode())
    except _Unknown:
        return None
    return digest.hexdigest()


class _Unknown(Exception):
    pass


def _parts(value: Any, seen: set[int]) -> Iterator[str]:
    if isinstance(value, _PLAIN):
        yield repr(value)
    elif isinstance(value, (tuple, frozenset)):
        yield type(value).__name__
        for member in value if isinstance(value, tuple) else sorted(value, key=repr):
            yield from _parts(member, seen)
    elif isinstance(value, types.FunctionType):
        yield from _function_parts(value, seen)
    elif isinstance(value, types.CodeType):
        yield from _code_parts(value, seen)
    elif isinstance(value, types.ModuleType) and is_installed(value.__name__):
        yield f"module {value.__name__}"
    elif isinstance(value, types.BuiltinFunctionType) and not _holds_an_object(value):
        yield f"builtin {value.__module__}.{value.__qualname__}"
    elif isinstance(value, type) and is_installed(value.__module__):
        yield f"type {value.__module__}.{value.__qualname__}"
    elif isinstance(value, _NAMED):
        yield f"{type(value).__name__} {value}"
    else:
        raise _Unknown


def _function_parts(function: types.FunctionType, seen: set[int]) -> Iterator[str]:
    if id(function) in seen:
        yield f"again {function.__qualname__}"
        return
    seen.add(id(function))
    if is_installed(function.__module__):
        yield f"{function.__module__}.{function.__qualname__}"
        for cell in function.__closure__ or ():  # what torch.vmap and the like were made from
            yield from _cell_parts(cell, seen)
        return
    yield from _code_parts(function.__code__, seen)
    yield from _parts(function.__defaults__, seen)
    for name, default in sorted((function.__kwdefaults__ or {}).items()):
        yield name
        yield from _parts(default, seen)
    for cell in function.__closure__ or ():
        yield from _cell_parts(cell, seen)
    for name in sorted(names_in(function.__code__)):
        if name in function.__globals__:
            yield name
            yield from _global_parts(function.__globals__[name], function.__code__, seen)


def _cell_parts(cell: types.CellType, seen: set[int]) -> Iterator[str]:
    try:
        value = cell.cell_contents
    except ValueError:  # not assigned yet
        raise _Unknown from None
    yield from _parts(value, seen)


def _global_parts(value: Any, code: types.CodeType, seen: set[int]) -> Iterator[str]:
    """A module of the user's own counts by those of its members that the code could mean."""
    if not isinstance(value, types.ModuleType) or is_installed(value.__name__):
        yield from _parts(value, seen)
        return
    yield f"module {value.__name__}"
    for name in sorted(names_in(code)):
        if hasattr(value, name):
            yield name
            yield from _global_parts(getattr(value, name), code, seen)


def _code_parts(code: types.CodeType, seen: set[int]) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_flags, code.co_argcount))
    for constant in code.co_consts:
        yield from _parts(constant, seen)


def _holds_an_object(function: types.BuiltinFunctionType) -> bool:
    """Whether a built-in is a method bound to a value, such as `scales.get`, or to a class of the user's own."""
    owner = function.__self__
    if isinstance(owner, type):
        return not is_installed(owner.__module__)
    return not isinstance(owner, (types.ModuleType, type(None)))


def names_in(code: types.CodeType) -> set[str]:
    """The global names and attributes that code uses, also in functions inside of it."""
    nested = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*(names_in(inner) for inner in nested))


def is_installed(module: str | None) -> bool:
    """Whether a module belongs to Python, torch or NumPy, which change only with their version."""
    root = (module or "").partition(".")[0]
    return root in {"torch", "numpy", builtins.__name__} or root in sys.stdlib_module_names
