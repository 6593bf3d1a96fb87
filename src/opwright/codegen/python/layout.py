"""The interface of an operator, for modules that implement it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TensorParameter:
    """A tensor that the operator takes; `gradient` is the backward output that is its gradient, None if it has none."""

    name: str
    gradient: str | None = None


@dataclass(frozen=True, slots=True)
class ConstantParameter:
    """A parameter that the Programs are specialised to the value of."""

    name: str
    value: float | int | bool | str | None


@dataclass(frozen=True, slots=True)
class FunctionLayout:
    """The interface of an operator.

    Attributes:
        parameters: All parameters, in order; a tensor has the name of the Programs' input.
        bare: Whether it returns one tensor instead of a tuple.
        operator: Its name in the header.
        place: Where it is defined, as "file:line".
        version: The version of opwright that writes it.
        command: The command that shows it; None if the command line cannot find the operator.
        cotangents: For each output, which input of the backward Program is its cotangent; None if it has none.
    """

    parameters: tuple[TensorParameter | ConstantParameter, ...]
    bare: bool
    operator: str
    place: str
    version: str
    cotangents: tuple[str | None, ...] = ()
    command: str | None = None

    @property
    def tensors(self) -> tuple[TensorParameter, ...]:
        """The parameters that are tensors."""
        return tuple(parameter for parameter in self.parameters if isinstance(parameter, TensorParameter))
