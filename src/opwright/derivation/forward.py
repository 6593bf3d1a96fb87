"""Forward mode: the results of a reference and their tangents, as a function of arguments and tangents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from opwright.derivation.differentiable_once import DifferentiableOnce, RefusingWrongTangents, is_differentiated
from opwright.derivation.zero_tangents import ZeroTangents
from opwright.errors import HidesFromGradients
from opwright.ir.names.fresh import fresh
from opwright.tracing.decompositions.composed import Composed
from opwright.tracing.interface.aliases import MAY_COPY
from opwright.tracing.interface.signature import Kind, Parameter, Signature
from opwright.tracing.torch_hooks import functorch
from opwright.tracing.trace_functions import none_of_them


def jvp_reference(reference: Callable[..., Any], arity: int, moving: Sequence[int]) -> Callable[..., Any]:
    """Make the function (arguments…, tangents…) → results and tangents of the differentiable ones.

    It returns one flat tuple if the reference returns a tensor or a tuple of tensors; else a pair, whose first member
    is what the reference returns. `split` takes either apart.

    Args:
        reference: The function as written.
        arity: How many arguments it takes.
        moving: Positions of the arguments that have a tangent.
    """

    def forward_mode(*given: Any) -> tuple[Any, ...]:
        arguments, tangents = list(given[:arity]), given[arity:]
        returned: list[Any] = []

        def of_moving(*values: torch.Tensor) -> tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]:
            for position, value in zip(moving, values, strict=True):
                arguments[position] = value
            made = reference(*arguments)
            with none_of_them():  # a container may have functions of its own that take it apart
                leaves, layout = tree_flatten(made)
            places = differentiable(leaves)
            returned.extend((leaves, layout, places))
            others = tuple(leaf for p, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor) and p not in places)
            return (values[0], *[leaves[place] for place in places]), others  # torch needs at least one output

        primals = tuple(arguments[position] for position in moving)
        (_, *outputs), (_, *moved), others = _jvp(of_moving, primals, tangents)
        leaves, layout, places = returned[-3:]
        remaining = {True: iter(outputs), False: iter(others)}
        below = [
            next(remaining[p in places]) if isinstance(leaf, torch.Tensor) else leaf for p, leaf in enumerate(leaves)
        ]
        if _are_tensors(below) and _is_flat(layout):
            return (*below, *moved)
        with none_of_them():
            return tree_unflatten(below, layout), tuple(moved)

    setattr(forward_mode, MAY_COPY, True)
    forward_mode.__name__ = f"{reference.__name__}_jvp"
    return forward_mode


def split(found: Sequence[Any]) -> tuple[Any, Sequence[torch.Tensor]]:
    """What the reference returns, and tangents, from what `jvp_reference` gives."""
    if not _are_tensors(found):
        returned, moved = found
        return returned, moved
    count, tangents = 0, 0
    while count + tangents < len(found):
        tangents += is_differentiable(found[count])
        count += 1
    return (found[0] if count == 1 else tuple(found[:count])), found[count:]


def _is_flat(layout: TreeSpec) -> bool:
    """Whether a structure is a leaf, or a tuple of several; a tuple of one could not be told from a leaf."""
    children = layout.children()
    return layout.is_leaf() or (layout.type is tuple and len(children) > 1 and all(c.is_leaf() for c in children))


def _are_tensors(leaves: Sequence[Any]) -> bool:
    return all(isinstance(leaf, torch.Tensor) for leaf in leaves)


def _jvp(function: Callable[..., Any], primals: Sequence[torch.Tensor], tangents: Sequence[torch.Tensor]) -> Any:
    """Outputs, their tangents, and the function's other results.

    Raises:
        DifferentiableOnce: If this is within another one, which is to pull back as well.
    """
    wrong = RefusingWrongTangents(again=is_differentiated((*primals, *tangents)))
    try:
        with Composed(1), functorch.nested_forward_mode(), wrong, ZeroTangents():
            found = torch.func.jvp(function, tuple(primals), tuple(tangents), has_aux=True)
    except RuntimeError as error:  # some formulas of torch are missing
        is_known = wrong.refused or isinstance(error, (NotImplementedError, DifferentiableOnce))
        if not is_known or (wrong.refused and functorch.is_within_jvp()):
            raise
    else:
        if not wrong.refused:
            return found
        if functorch.is_within_jvp():
            raise DifferentiableOnce(f"the tangents of {function.__name__} are pulled back")
    return _jvp_by_pulling_back(function, primals, tangents)


def _jvp_by_pulling_back(
    function: Callable[..., Any], primals: Sequence[torch.Tensor], tangents: Sequence[torch.Tensor]
) -> Any:
    """The same by reverse mode: a vjp is linear in its cotangent, and the vjp of that linear function is the jvp."""
    with Composed(1), _NothingHidden():
        try:
            outputs, pull, *others = torch.func.vjp(function, *primals, has_aux=True)
        except RuntimeError as error:
            if _OF_HOOKS not in str(error):
                raise
            hint = "differentiate in reverse mode, or call it without torch.utils.checkpoint"
            raise HidesFromGradients("the function saves tensors by hooks, as checkpoints do", hint=hint) from error
        try:
            _, push, *_ = torch.func.vjp(pull, tuple(torch.zeros_like(output) for output in outputs))
        except RuntimeError as error:  # as where a gradient of what changes in place has no gradient
            fact = f"its gradient cannot be differentiated for forward mode: {str(error).partition(' Hint')[0]}"
            raise HidesFromGradients(fact, hint="differentiate in reverse mode") from error
        (moved,) = push(tuple(tangents))
    return outputs, moved, *others


_OF_HOOKS = "saved tensor hooks"  # what torch.func's reverse mode refuses, and forward mode does not


# Of several values for one place, torch keeps one and gives each its gradient. Values stand at these positions.
_PUTS = {"index_put": 2, "put": 2, "scatter": 3, "index_copy": 3, "index_fill": 3}
_SUMMING = {"index_put": 3, "put": 3}


def _has_no_adjoint(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether the vjp of the vjp of a function of torch may be another one than its jvp."""
    name = str(getattr(func, "__name__", "")).partition(".")[0]
    if name == "__setitem__":
        return any(_may_repeat(index) for index in (args[1] if isinstance(args[1], tuple) else args[1:2]))
    name = name.removesuffix("_")
    if name not in _PUTS:
        return name == "logcumsumexp"  # whose gradient is computed of the logarithm of the cotangent
    sums = args[_SUMMING[name]] if name in _SUMMING and len(args) > _SUMMING[name] else kwargs.get("accumulate", False)
    values = (*args[_PUTS[name] :], *(kwargs.get(key) for key in ("value", "values", "src", "source")))
    return not sums and any(isinstance(value, torch.Tensor) for value in values)


def _may_repeat(index: Any) -> bool:
    return isinstance(index, list) or (isinstance(index, torch.Tensor) and index.dtype is not torch.bool)


class _NothingHidden(TorchFunctionMode):
    """Refuse what reverse mode takes otherwise than forward mode.

    Reverse mode stops where gradients are switched off, and forward mode does not.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run a function of torch.

        Raises:
            HidesFromGradients: If it switches gradients off, or its gradient is no adjoint.
        """
        if func is torch._C._set_grad_enabled and not args[0]:
            fact = "the function switches gradients off, which forward mode does not see"
            raise HidesFromGradients(fact, hint="call .detach() on what is to have no gradient")
        if _has_no_adjoint(func, args, kwargs or {}):
            fact = f"forward mode of {func.__name__} is not what follows from its gradient"
            raise HidesFromGradients(fact, hint="differentiate in reverse mode")
        return func(*args, **(kwargs or {}))


def jvp_signature(signature: Signature, moving: Sequence[int]) -> Signature:
    """The parameters of `jvp_reference`."""
    given = tuple(Parameter(p.name, p.kind, p.optional, type=p.type) for p in signature.parameters)
    taken = {parameter.name for parameter in given}
    tangents = []
    for position in moving:
        name = fresh(f"{given[position].name}_tangent", taken)
        taken.add(name)
        tangents.append(Parameter(name, Kind.TENSOR, False))
    return Signature((*given, *tangents), None)


def differentiable(leaves: Sequence[Any]) -> tuple[int, ...]:
    """Positions of the tensors that can have a tangent."""
    return tuple([place for place, leaf in enumerate(leaves) if is_differentiable(leaf)])


def is_differentiable(leaf: Any) -> bool:
    """Whether it is a tensor that can have a tangent."""
    return isinstance(leaf, torch.Tensor) and (leaf.is_floating_point() or leaf.is_complex())
