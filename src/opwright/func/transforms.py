"""The transforms of `torch.func` that return functions: here they return operators."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_leaves, tree_map

from opwright.func.derived import Transform, derived, operator_of
from opwright.tracing.effects.batch_places import is_misplaced
from opwright.tracing.torch_hooks.functorch import innermost

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
        return torch.func.vmap(_refusing_places(operator_of(func), out_dims), **options, chunk_size=chunk_size)
    return _derived(_vmap, func, name="vmap", **options)


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


def _vmap(func: Function, **options: Any) -> Function:
    return torch.func.vmap(_refusing_places(func, options["out_dims"]), **options)


def _refusing_places(func: Function, out_dims: Any) -> Function:
    """The function, whose results without a batch cannot get one at a dimension that they do not have.

    PyTorch reads memory that is not its own there, and may end the process.
    """
    if all(place is None or (isinstance(place, int) and place == 0) for place in tree_leaves(out_dims)):
        return func

    @functools.wraps(func)
    def checked(*args: Any, **kwargs: Any) -> Any:
        returned, level = func(*args, **kwargs), innermost().number
        results, layout = tree_flatten(returned)
        is_one = isinstance(returned, torch.Tensor) and isinstance(out_dims, tuple)  # which torch takes for its member
        places = out_dims if is_one else _broadcast_to_and_flatten(out_dims, layout) or ()
        for result, place in zip(results, places, strict=False):  # torch refuses another number
            if isinstance(result, torch.Tensor) and isinstance(place, int) and is_misplaced(result, level, place):
                raise RuntimeError(
                    f"vmap: out_dims has {place} for a result of {result.dim()} dimensions that does not depend on the "
                    "batch; give a place that is not negative, or return a result that depends on it"
                )
        return returned

    return checked


def _value_and_grad(func: Function, **options: Any) -> Function:
    of_pair = torch.func.grad_and_value(func, **options)

    @functools.wraps(of_pair)
    def swapped(*args: Any, **kwargs: Any) -> Any:
        gradient, value = of_pair(*args, **kwargs)
        return value, gradient

    return swapped
