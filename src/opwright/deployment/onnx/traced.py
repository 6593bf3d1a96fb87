"""An operator's call → a torch module to export, which takes the numbers that may vary as tensors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from opwright.binding.serving.numbers import can_be_given, given_at_run_time, needed_in, numbers_in
from opwright.deployment.onnx.runnable import Runnable
from opwright.deployment.programs.exported import OperatorCall
from opwright.errors import NoKernel, OpwrightError
from opwright.ir.names.identifiers import identifiers
from opwright.tracing.guarded import guarded
from opwright.tracing.interface.specs import describe
from opwright.tracing.scalars.type_questions import asks_for_types


@dataclass(frozen=True, slots=True)
class Traced:
    """A call of an operator as a module.

    Attributes:
        module: Takes the arguments at `taken`, in this order; numbers as tensors without dimensions, of float64 or
            int64.
        names: The names of all parameters, as identifiers.
        taken: Positions of the tensors, and of the numbers that may have other values.
        numbers: Positions of these numbers.
    """

    module: nn.Module
    names: tuple[str, ...]
    taken: tuple[int, ...]
    numbers: tuple[int, ...]


class _Written(nn.Module):
    """The reference as written, for one choice of its numbers."""

    def __init__(self, call: OperatorCall, tensors: Sequence[int]) -> None:
        super().__init__()
        self._reference = call.signature.positional(call.operator.reference)
        self._arguments = list(call.arguments)
        self._tensors = tensors

    def forward(self, *given: torch.Tensor) -> Any:
        """Call it."""
        arguments = [*self._arguments]
        for position, tensor in zip(self._tensors, given, strict=True):
            arguments[position] = tensor
        return self._reference(*arguments)


def candidates(call: OperatorCall) -> Iterator[Traced]:
    """The ways to export a call, best first: with its numbers left open; as written, with these numbers; traced.

    The last is for gradients, which `torch.export` makes of a function by calls that it does not always follow.
    """
    names = tuple(identifiers([parameter.name for parameter in call.signature.parameters]))
    tensors = tuple(place for place, value in enumerate(call.arguments) if isinstance(value, torch.Tensor))
    found = _with_numbers(call, names)
    if found:
        yield found
    yield Traced(_Written(call, tensors), names, tensors, ())
    with contextlib.suppress(OpwrightError):
        yield Traced(_traced(call, names, list(call.arguments)), names, tensors, ())


def _with_numbers(call: OperatorCall, names: tuple[str, ...]) -> Traced | None:
    """With as many numbers left open as can be; None if there are none."""
    if asks_for_types(call.operator.reference):
        return None
    numbers = {place for place, value in enumerate(call.arguments) if can_be_given(value)}
    while numbers:
        prepared = given_at_run_time(call.arguments, sorted(numbers))
        try:
            module = _traced(call, names, prepared)
        except NoKernel as refusal:
            numbers -= needed_in(prepared, refusal, names).keys()
        except OpwrightError:
            return None
        else:
            taken = tuple(place for place, value in enumerate(prepared) if isinstance(value, torch.Tensor))
            return Traced(module, names, taken, tuple(prepared.numbers))
    return None


def _traced(call: OperatorCall, names: Sequence[str], prepared: Sequence[Any]) -> Runnable:
    from opwright.tracing.trace import trace  # imports sympy, which `import opwright` does without

    reference = call.signature.positional(call.operator.reference)
    specs = describe(names, prepared, gradients=False, numbers=numbers_in(prepared))
    module = Runnable(*guarded(reference, lambda: trace(reference, specs)))
    module(*(value for value in prepared if isinstance(value, torch.Tensor)))  # refuses what it cannot run
    return module
