"""The transforms of `torch.func` that return functions: here they return operators."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map

from opwright.func.derived import Transform, derived, operator_of

Function = Callable[..., Any]


def grad(func: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Function:
    """The operator of the gradient of `func`, as `torch.func.grad` has it."""
    return _derived(torch.func.grad, func, argnums=argnums, has_aux=has_aux)


def grad_and_value(func: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Function:
    """The operator (gradient, value) of `func`, as `torch.func.grad_and_value` has it."""
    return _derived(torch.func.grad_and_value, func, argnums=argnums, has_aux=has_aux)


def value_and_grad(func: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Function:
    """The operator (value, gradient) of `func`; with `has_aux`, the value is the pair that `func` returns."""
    return _derived(_value_and_grad, func, name="value_and_grad", argnums=argnums, has_aux=has_aux)


def vmap(
    func: Function, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Function:
    """The operator of `func` over a batch, as `torch.func.vmap` has it; with `chunk_size`, called for each chunk."""
    options = {"in_dims": in_dims, "out_dims": out_dims, "randomness": randomness}
    if chunk_size is not None:
        return torch.func.vmap(operator_of(func), **options, chunk_size=chunk_size)
    return _derived(torch.func.vmap, func, **options)


def jacrev(
    func: Function,
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Function:
    """The operator of the Jacobian of `func` by reverse mode, as `torch.func.jacrev` has it.

    With `chunk_size`, it is `torch.func.jacrev` of the operator of `func`, whose backward pass runs for each chunk.
    """
    options: dict[str, Any] = {"argnums": argnums, "has_aux": has_aux}
    if chunk_size is not None or _preallocate_and_copy:
        options |= {"chunk_size": chunk_size, "_preallocate_and_copy": _preallocate_and_copy}
        return torch.func.jacrev(operator_of(func), **options)
    return _derived(torch.func.jacrev, func, **options)


def jacfwd(
    func: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Function:
    """The operator of the Jacobian of `func` by forward mode, as `torch.func.jacfwd` has it."""
    return _derived(torch.func.jacfwd, func, argnums=argnums, has_aux=has_aux, randomness=randomness)


def hessian(func: Function, argnums: int | tuple[int, ...] = 0) -> Function:
    """The operator of the Hessian of `func`, as `torch.func.hessian` has it."""
    return _derived(torch.func.hessian, func, argnums=argnums)


def _derived(transform: Callable[..., Function], func: Function, *, name: str = "", **options: Any) -> Function:
    keys = tuple([_key(option) for option in options.values()])
    apply = functools.partial(_apply, transform, {name: _own(option) for name, option in options.items()})
    return derived(func, Transform(name or transform.__name__, keys, apply))


def _apply(transform: Callable[..., Function], options: dict[str, Any], func: Function) -> Function:
    return transform(func, **options)


def _own(option: Any) -> Any:
    """A copy of an option: lists of the caller's may change."""
    return tree_map(lambda leaf: leaf, option) if isinstance(option, (tuple, list, dict)) else option


def _key(option: Any) -> Hashable:
    """An option as a key, which tells 0 from False."""
    if type(option) is tuple:
        return tuple([_key(member) for member in option])
    if isinstance(option, (list, dict)):
        leaves, layout = tree_flatten(option)
        return (*map(_key, leaves), layout)
    return type(option), option


def _value_and_grad(func: Function, **options: Any) -> Function:
    of_pair = torch.func.grad_and_value(func, **options)

    @functools.wraps(of_pair)
    def swapped(*args: Any, **kwargs: Any) -> Any:
        gradient, value = of_pair(*args, **kwargs)
        return value, gradient

    return swapped
