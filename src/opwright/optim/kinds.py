"""Kinds: what one kernel serves. The update of a kind is a function of flat arguments that calls the definition."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from opwright.errors import UpdateRefused
from opwright.optim.definition import FACTOR, MASTER, STEP, Definition
from opwright.optim.factor import scaled
from opwright.tracing.interface.place import place_of

_is_alias_of: Callable[[torch.Tensor, torch.Tensor], bool] = torch._C._is_alias_of  # type: ignore[attr-defined]

Rounded = Callable[[torch.Tensor, torch.dtype], torch.Tensor]


@dataclass(frozen=True, slots=True)
class StateKind:
    """A state of a kind.

    Attributes:
        dtype: In which it is kept.
        sizes: For each dimension, whether its size is one.
        is_number: Whether it has no dimensions though the parameter has: it keeps its dtype for the definition.
        is_distant: Whether it is such a number in the memory of a GPU, for which the processor would have to wait.
    """

    dtype: torch.dtype
    sizes: tuple[bool, ...]
    is_number: bool
    is_distant: bool = False

    @property
    def is_widened(self) -> bool:
        """Whether the definition gets it in the dtype that it computes in: not a number or a counter."""
        return not self.is_number and (self.dtype.is_floating_point or self.dtype.is_complex)


@dataclass(frozen=True, slots=True)
class Kind:
    """What parameters of one kernel share.

    Attributes:
        sizes: For each dimension, whether its size is one.
        param: The dtype of the parameter.
        grad: Of the gradient.
        states: Of each state; None if there is no such state.
        master: The dtype of the copy that is updated in place of the parameter; None if there is none.
        constants: The hyper-parameters that are no numbers, by name.
        numbers: The names of those that are.
        maximize: Whether the update is in the direction of the gradient.
        scaled: Whether the gradient has a factor: of clipping, and of a GradScaler.
        written: Whether the gradient with its factor is written back.
        at_random: Whether results of half types are rounded at random.
        is_flat: Whether all tensors of the parameter's shape lie in memory in the same dense order.
        is_part: Whether kernels see parts of tensors, and so must be element by element.
        distant_factor: Whether the factor is not a number but a tensor of float64 where the gradient is, for which the
            processor does not wait.
        device: The type of the device.
    """

    sizes: tuple[bool, ...]
    param: torch.dtype
    grad: torch.dtype
    states: tuple[StateKind | None, ...]
    master: torch.dtype | None
    constants: tuple[tuple[str, Any], ...]
    numbers: tuple[str, ...]
    maximize: bool
    scaled: bool
    written: bool
    at_random: bool
    is_flat: bool
    is_part: bool = False
    distant_factor: bool = False
    device: str = "cpu"


@functools.lru_cache(maxsize=256)
def computes_in(kind: Kind) -> torch.dtype:
    """The dtype of the definition's arguments: the widest of the parameter and its states, but for integer ones.

    What is rounded at random is not rounded before.
    """
    dtype = kind.master or kind.param
    if kind.at_random and dtype.itemsize < torch.float32.itemsize:
        dtype = torch.float32
    for state in kind.states:
        if state and state.is_widened:
            dtype = torch.promote_types(dtype, state.dtype)
    return dtype


def split_numbers(definition: Definition, hyper: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, Any]]:
    """The floats among hyper-parameters, also in tuples, by flat names; and the rest."""
    numbers: dict[str, float] = {}
    constants: dict[str, Any] = {}
    for name, value in hyper.items():
        if name in definition.constants:
            constants[name] = value
        elif isinstance(value, (tuple, list)):
            for position, member in enumerate(value):
                if (flat := f"{name}_{position}") in hyper or flat in definition.states:
                    raise UpdateRefused(
                        f"{definition.name} takes '{flat}', which is what the member {position} of '{name}' is called",
                        place=place_of(definition.function),
                        hint=f"call '{flat}' otherwise",
                    )
                _put(numbers, constants, flat, member)
        else:
            _put(numbers, constants, name, value)
    return numbers, constants


def _put(numbers: dict[str, float], constants: dict[str, Any], name: str, value: Any) -> None:
    if isinstance(value, float):
        numbers[name] = value
    else:
        constants[name] = value


def operand_names(definition: Definition, kind: Kind) -> list[str]:
    """The tensors of the update, in order."""
    states = [name for name, state in zip(definition.states, kind.states, strict=True) if state]
    factor = [FACTOR] if kind.distant_factor else []
    return ["param", *([MASTER] if kind.master else []), "grad", *states, *factor]


def update_of(
    definition: Definition, kind: Kind, hyper: Mapping[str, Any], rounded: Rounded | None = None
) -> tuple[Callable[..., tuple[Any, ...]], list[str], list[str]]:
    """The update of a kind: a function of flat arguments.

    Args:
        definition: What it calls.
        kind: The kind.
        hyper: Hyper-parameters like those of its calls: which are in tuples.
        rounded: Converts a result to the dtype that it is kept in; by default to nearest.

    Returns:
        The function; the names of its arguments; and for each result, the name of the argument that it replaces.
    """
    names, results = argument_names(definition, kind, hyper), result_names(definition, kind)
    computes_in(kind)  # not in the trace, which would record it

    @functools.wraps(definition.function)
    def update(*flat: Any) -> tuple[Any, ...]:
        given = dict(zip(names, flat, strict=True))
        return updated(definition, kind, given, gathered(hyper, given), rounded or to_nearest)

    return update, names, results


def argument_names(definition: Definition, kind: Kind, hyper: Mapping[str, Any]) -> list[str]:
    """The arguments of an update: tensors, the step, the factor if there is one, numbers."""
    numbers = split_numbers(definition, hyper)[0]
    factor = [FACTOR] if kind.scaled and not kind.distant_factor else []
    return [*operand_names(definition, kind), STEP, *factor, *numbers]


def result_names(definition: Definition, kind: Kind) -> list[str]:
    """For each result of an update, the argument that it replaces."""
    names = operand_names(definition, kind)
    return [name for name in names if name != FACTOR and (name != "grad" or kind.written)]


def gathered(hyper: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Hyper-parameters with the numbers of a call in the places of their own."""
    made: dict[str, Any] = {}
    for name, value in hyper.items():
        if isinstance(value, (tuple, list)):
            made[name] = type(value)(given.get(f"{name}_{k}", member) for k, member in enumerate(value))
        else:
            made[name] = given.get(name, value)
    return made


def to_nearest(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Convert to a dtype."""
    return value.to(dtype)


def not_yet(value: torch.Tensor, _: torch.dtype) -> torch.Tensor:
    """Leave a result in the dtype that it is computed in."""
    return value


def updated(
    definition: Definition,
    kind: Kind,
    given: Mapping[str, Any],
    hyper: Mapping[str, Any],
    rounded: Rounded = to_nearest,
) -> tuple[Any, ...]:
    """The results of the update of a kind, in the order of `update_of`, in the dtypes that they are kept in.

    Args:
        definition: The update.
        kind: The kind.
        given: The arguments, by name.
        hyper: The hyper-parameters.
        rounded: Converts a result to the dtype that it is kept in.
    """
    dtype = computes_in(kind)
    param, grad = given[MASTER if kind.master else "param"], given["grad"]
    if kind.scaled:
        grad = scaled(grad, given[FACTOR])
    written = [grad.to(kind.grad)] if kind.written else []
    grad = grad.to(dtype)
    states = [given.get(name) for name in definition.states]
    wide = [
        state.to(dtype) if state is not None and how and how.is_widened else state
        for state, how in zip(states, kind.states, strict=True)
    ]
    made = call(definition, param.to(dtype), -grad if kind.maximize else grad, wide, given[STEP], hyper)
    for value, before in zip(made, (param, *wide), strict=True):
        _refuse_truncation(value, before)
    new, *new_states = made
    masters = [rounded(new, kind.master)] if kind.master else []
    kept = [rounded(value, how.dtype) for value, how in zip(new_states, kind.states, strict=True) if how is not None]
    return _apart((rounded(new, kind.param), *masters, *written, *kept), list(given.values()))


def _refuse_truncation(value: Any, before: Any) -> None:
    """Refuse floats in the memory of integers, as operations in place do."""
    if isinstance(before, torch.Tensor) and value.is_floating_point() and not before.is_floating_point():
        raise RuntimeError(f"result type {value.dtype} can't be cast to the desired output type {before.dtype}")


def _apart(results: Sequence[torch.Tensor], arguments: Sequence[Any]) -> tuple[torch.Tensor, ...]:
    """Results of which none lies in the memory of an argument or of another one: each is stored before the next."""
    taken = [argument for argument in arguments if isinstance(argument, torch.Tensor)]
    made: list[torch.Tensor] = []
    for result in results:
        is_taken = any(_is_alias_of(result, other) for other in (*taken, *made))
        made.append(result.clone() if is_taken else result)
    return tuple(made)


def call(
    definition: Definition,
    param: Any,
    grad: Any,
    states: Sequence[Any],
    step: Any,
    hyper: Mapping[str, Any],
) -> tuple[Any, ...]:
    """Call a definition, and refuse what it returns if that is not one value for each thing that changes.

    Raises:
        UpdateRefused: If it is not.
    """
    made = definition.function(param, grad, *states, step, **hyper)
    wanted = ("param", *definition.states)
    found = made if isinstance(made, tuple) else (made,)
    if len(found) != len(wanted):
        raise UpdateRefused(
            f"{definition.name} returns {len(found)} values, not {len(wanted)}",
            place=place_of(definition.function),
            hint=f"return {', '.join(wanted)}{',' if len(wanted) == 1 else ''}",
        )
    for name, before, after in zip(wanted, (param, *states), found, strict=True):
        _refuse_other(definition, name, before, after)
    return found


def _refuse_other(definition: Definition, name: str, before: Any, after: Any) -> None:
    if before is None and after is None:
        return
    if not isinstance(after, torch.Tensor) or before is None:
        what = "None" if after is None else type(after).__name__
        raise UpdateRefused(
            f"{definition.name} returns {what} as the new '{name}'"
            + (", which has no value" if before is None else ""),
            place=place_of(definition.function),
            hint="return a tensor for each state that there is, and None for the others",
        )
    if after.shape != before.shape:
        raise UpdateRefused(
            f"{definition.name} returns a new '{name}' of shape {tuple(after.shape)}, not {tuple(before.shape)}",
            place=place_of(definition.function),
            hint="return values of the shapes of the arguments that they replace",
        )
