"""The rules by name: what an operation does with wrappers. Each takes `(kind, operation, args, kwargs)`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from opwright.errors import WrapperRefused
from opwright.tensors.wrapper.opening import Args, Held, Kwargs, Operation, dense, opened, wrapped

Rule = Callable[[type[Held], Operation, Args, Kwargs], Any]


def rewrap(kind: type[Held], operation: Operation, args: Args, kwargs: Kwargs) -> Any:
    """Run it on the tensors inside and wrap what it returns; on each of them in turn if there are several.

    Raises:
        WrapperRefused: If the wrappers among the arguments do not hold as many tensors.
    """
    met: list[Held] = []
    inner, inner_kwargs = opened(args, kwargs, 0, met)
    count = len(kind.names.data)
    for wrapper in met:
        if len(wrapper.names.data) != count:
            raise WrapperRefused(
                f"{name_of(operation)} cannot be run on what is inside of types that hold different tensors",
                hint=f"give {kind.__name__} a rule for it",
            )
    result = operation(*inner, **inner_kwargs)
    if count == 1 and isinstance(result, torch.Tensor):
        return kind.made((result,), kind.metadata_of(met))
    results = [result]
    for place in range(1, count):
        inner, inner_kwargs = opened(args, kwargs, place, [])
        results.append(operation(*inner, **inner_kwargs))
    return wrapped(kind, results, lambda: kind.metadata_of(met))


def element_wise(kind: type[Held], operation: Operation, args: Args, kwargs: Kwargs) -> Any:
    """Run it on each of the tensors inside; its result has one element for each of the arguments'.

    Raises:
        WrapperRefused: If it has not.
    """
    shape = torch.broadcast_shapes(*(tensor.shape for tensor in tensors_in((args, kwargs))))
    result = rewrap(kind, operation, args, kwargs)
    for tensor in tensors_in(result):
        if tensor.shape != shape:
            raise WrapperRefused(
                f"{name_of(operation)} is not element-wise: it makes {tuple(tensor.shape)} of {tuple(shape)}",
                hint=f'give {kind.__name__} another rule for it, such as "rewrap" or "reduction"',
            )
    return result


def reduction(kind: type[Held], operation: Operation, args: Args, kwargs: Kwargs) -> Any:
    """Run it on the tensor inside, or on the dense tensor where there are several; its results are plain tensors."""
    if len(kind.names.data) > 1:
        return densify(kind, operation, args, kwargs)
    inner, inner_kwargs = opened(args, kwargs, 0, [])
    return operation(*inner, **inner_kwargs)


def densify(kind: type[Held], operation: Operation, args: Args, kwargs: Kwargs) -> Any:
    """Run it on plain tensors of the same values; its results are plain tensors."""
    plain, plain_kwargs = dense(args, kwargs)
    return operation(*plain, **plain_kwargs)


def refuse(kind: type[Held], operation: Operation, args: Args, kwargs: Kwargs) -> Any:
    """Raise an error that names the operation and the type.

    Raises:
        WrapperRefused: Always.
    """
    raise WrapperRefused(
        f"{kind.__name__} refuses {name_of(operation)}, by a rule of its own or of a base",
        hint="call densify() first, or give a subclass another rule",
    )


def without_rule(kind: type[Held], operation: Operation, args: Args, kwargs: Kwargs) -> Any:
    """Raise an error that names the operation and the type, which says nothing about it.

    Raises:
        WrapperRefused: Always.
    """
    raise WrapperRefused(
        f"{kind.__name__} has no rule for {name_of(operation)}",
        hint=f'{kind.__name__}.rule(function, torch.ops.…), or "rewrap", "element-wise", "reduction", "densify"',
    )


def by_function(function: Callable[..., Any]) -> Rule:
    """The rule that a function is: it gets the operation's own arguments, wrappers as they are."""
    return lambda kind, operation, args, kwargs: function(*args, **kwargs)


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in arguments or results."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for member in value:
            yield from tensors_in(member)
    elif isinstance(value, dict):
        yield from tensors_in([*value.values()])


def name_of(operation: Any) -> str:
    """How errors call an operation: "aten.add.Tensor", or an operator's name."""
    return str(getattr(operation, "name", operation) if not callable(getattr(operation, "name", "")) else operation)


RULES: dict[str, Rule] = {
    "rewrap": rewrap,
    "element-wise": element_wise,
    "reduction": reduction,
    "densify": densify,
    "refuse": refuse,
}
