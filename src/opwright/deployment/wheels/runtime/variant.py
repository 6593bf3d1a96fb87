"""A variant: the kernels of one operator for one dtype, rank and broadcast pattern, and when they may be asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from opwright.tracing.interface.memory import lie_row_by_row
from opwright.tracing.interface.orders import Orders, orders_of
from opwright.tracing.scalars.guards import NumberGuard

Launcher = Callable[..., Any]
_MOST = 3e38  # what float32 holds: larger floats, infinities and NaN are the reference's
_LEAST_INTEGER, _INTEGERS = -(2**63), 2**64


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """Kernels that are loaded, and what they were written for.

    Attributes:
        rung: What its kernels are written in.
        device: The type of the devices whose tensors they take.
        forward: Tensors in, outputs and intermediates out; None for each if it declines.
        backward: What is saved, cotangents and sizes in, gradients out; None if it was built without.
        constants: By position, type and spelling of the constants that it was written for.
        tensors: Positions of the arguments that `forward` takes.
        numbers: Those among them that are Python numbers.
        integers: Those that are Python ints.
        number_guards: For which values of these it is valid, by position.
        outputs: How many tensors the operator returns.
        tangents: Positions of the outputs that have a cotangent.
        reach: For each of `tangents`, the positions of the arguments to which a gradient flows from it.
        gradients: For each result of `backward`, the position of its argument.
        arguments: Positions of the arguments that `backward` reads.
        contributing: Positions of the tensors that the gradients depend on.
        checked: Those of `contributing` that only the function itself reads, which may be changed in place before.
        kept: Positions, in what `forward` gives, of what `backward` reads besides.
        sizes: Sizes that `backward` is given as numbers: (argument, dimension).
        is_random: Whether it draws random numbers.
        orders: In which order the dimensions of the tensors that it takes lie in memory, by position; () for any.
        needs_row_major: Whether it takes only tensors that lie row by row.
        needs_whole_memory: Whether it takes only tensors that are all there is in their memory.
    """

    rung: Literal["cpp", "cuda"]
    device: str
    forward: Launcher
    backward: Launcher | None
    constants: Mapping[int, tuple[str, str]]
    tensors: tuple[int, ...]
    numbers: tuple[int, ...]
    integers: tuple[int, ...]
    number_guards: tuple[tuple[int, NumberGuard], ...]
    outputs: int
    tangents: tuple[int, ...]
    reach: tuple[tuple[int, ...], ...]
    gradients: tuple[int, ...]
    arguments: tuple[int, ...]
    contributing: tuple[int, ...]
    checked: tuple[int, ...]
    kept: tuple[int, ...]
    sizes: tuple[tuple[int, int], ...]
    is_random: bool
    orders: Orders
    needs_row_major: bool
    needs_whole_memory: bool

    @classmethod
    def from_record(cls, record: Mapping[str, Any], launcher: Callable[[str], Launcher]) -> Variant:
        """Read one from JSON, given how to find a launcher by its name."""
        plain = {name: tuple(value) if isinstance(value, list) else value for name, value in record.items()}
        read = {
            "forward": launcher(record["forward"]),
            "backward": launcher(record["backward"]) if record["backward"] else None,
            "constants": {int(position): tuple(value) for position, value in record["constants"].items()},
            "number_guards": tuple((position, NumberGuard(**guard)) for position, guard in record["number_guards"]),
            "orders": tuple((position, tuple(order), tuple(along)) for position, order, along in record["orders"]),
            "reach": tuple(map(tuple, record["reach"])),
            "sizes": tuple((argument, dimension) for argument, dimension in record["sizes"]),
        }
        return cls(**plain | read)

    def run(self, arguments: Sequence[Any]) -> tuple[torch.Tensor, ...] | None:
        """Outputs, then intermediates; None if it does not take the arguments."""
        if not self._fits(arguments):
            return None
        made = self.forward(*[self._as_tensor(arguments, position) for position in self.tensors])
        if isinstance(made, torch.Tensor):
            return (made,)
        return None if made is None or made[0] is None else tuple(made)

    def flowing(self, wanted: Sequence[bool]) -> set[int]:
        """Positions of the outputs from which gradients flow to arguments of which some are wanted."""
        reached = zip(self.tangents, self.reach, strict=True)
        return {output for output, reach in reached if any(wanted[position] for position in reach)}

    def run_backward(
        self,
        arguments: Sequence[Any],
        kept: Sequence[torch.Tensor],
        cotangents: Sequence[torch.Tensor],
        shapes: Sequence[Sequence[int]],
    ) -> tuple[torch.Tensor, ...] | None:
        """Gradients of the arguments at `gradients`; None if the kernel declines.

        Args:
            arguments: Of the forward pass; those that are not read may be anything.
            kept: What the forward pass made and `backward` reads.
            cotangents: Gradients of the outputs at `tangents`.
            shapes: Of each argument; those of constants may be anything.
        """
        assert self.backward is not None
        read = [self._as_tensor(arguments, position) for position in self.arguments]
        sizes = [shapes[position][dimension] for position, dimension in self.sizes]
        made = self.backward(*read, *kept, *cotangents, *sizes)
        if isinstance(made, torch.Tensor):
            return (made,)
        return None if made is None or made[0] is None else tuple(made)

    def _fits(self, arguments: Sequence[Any]) -> bool:
        return (
            all(_is_written(arguments[position], *value) for position, value in self.constants.items())
            and all((_is_integer if p in self.integers else _is_float)(arguments[p]) for p in self.numbers)
            and (self._floats_are_floats(arguments) or _are_floating(arguments))
            and all(guard.holds(arguments[p]) for p, guard in self.number_guards)
            and self.orders in ((), orders_of(arguments))
            and (not self.needs_row_major or lie_row_by_row(arguments, whole_memory=self.needs_whole_memory))
        )

    def _floats_are_floats(self, arguments: Sequence[Any]) -> bool:
        return all(position in self.integers or type(arguments[position]) is float for position in self.numbers)

    def _as_tensor(self, arguments: Sequence[Any], position: int) -> Any:
        """An argument as kernels take it: Python's numbers in float64 or int64, an int in the place of a float too."""
        argument = arguments[position]
        if not isinstance(argument, (int, float)):
            return argument
        dtype = torch.int64 if position in self.integers or position not in self.numbers else torch.float64
        return torch.scalar_tensor(argument, dtype=torch.float64 if isinstance(argument, float) else dtype)


def _is_written(argument: Any, kind: str, text: str) -> bool:
    """Whether a constant has this type and spelling, which tells 1 from True and 0.0 from -0.0."""
    return type(argument).__name__ == kind and repr(argument) == text


def _is_float(argument: Any) -> bool:
    """Whether it is a float in this range, or an int that a float holds."""
    if type(argument) is int:
        return abs(argument) < _MOST and int(float(argument)) == argument
    return type(argument) is float and abs(argument) < _MOST


def _are_floating(arguments: Sequence[Any]) -> bool:
    """Whether an int among the arguments does as a float of this value does: integer tensors tell them apart."""
    return all(a.is_floating_point() or a.is_complex() for a in arguments if isinstance(a, torch.Tensor))


def _is_integer(argument: Any) -> bool:
    return type(argument) is int and 0 <= argument - _LEAST_INTEGER < _INTEGERS
