"""Kernels of an optimizer as steps use them: derived in this process, or built ahead and packaged."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch

from opwright.errors import OpwrightError
from opwright.optim.kinds import Kind


@dataclass(frozen=True, eq=False)
class Variant:
    """A kernel, or several, for many tensors.

    Attributes:
        run: Takes the address of a table, see include/opwright/table.h; returns how many tensors it does not serve:
            it has updated all or none, or one by one those that it serves. Where there is a `launch`, it computes the
            numbers of the table.
        name: Of the operator that it is.
        bytes: How much room it needs for each tensor.
        reduced_bytes: The same for what is reduced of a tensor, or of a piece of it; 0 if nothing is.
        operands: The tensors of a row of its table.
        numbers: The numbers of a row.
        text: What was built; empty in a package.
        device: The same for a GPU, if there is one.
        launch: Takes the address of a table, and a copy of it on the GPU, and updates there in one launch; None for the
            processor, and for kernels of each tensor.
        one_by_one: Whether it runs kernels for each tensor.
    """

    run: Any
    name: str
    bytes: int
    reduced_bytes: int
    operands: tuple[str, ...]
    numbers: tuple[str, ...]
    text: str = ""
    device: str | None = None
    launch: Any = None
    one_by_one: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a kernel is wanted for.

    Attributes:
        kind: The kind of parameters.
        hyper: Hyper-parameters like those of the calls.
        tensors: The operands of a parameter, by name.
        numbers: All numbers of a call, by name.
    """

    kind: Kind
    hyper: Mapping[str, Any]
    tensors: Mapping[str, torch.Tensor]
    numbers: Mapping[str, float]


def of_any_sizes(kind: Kind) -> Kind:
    """The kind whose kernels serve a kind whatever the sizes are; flat parameters have at least one dimension."""
    if not kind.is_flat:
        return kind
    return replace(kind, sizes=(), states=tuple(state and replace(state, sizes=()) for state in kind.states))


def variant_of(run: Any, name: str, operands: tuple[str, ...], numbers: tuple[str, ...], **more: Any) -> Variant:
    """A kernel, which says itself how much room it needs."""
    return Variant(run, name, run(0), run(1), operands, numbers, **more)


class Telling(Protocol):
    """Says, once for each reason, why the definition serves."""

    def tell(self, refusal: OpwrightError) -> None:
        """Say it."""


class Watched(Protocol):
    """What looks at one plan's tensors, faster than Python (native/watched.h)."""

    def holds(self, lists: list[list[torch.Tensor]], kept: dict[torch.Tensor, Any]) -> bool:
        """Whether nothing but the addresses of gradients has changed."""

    def gradients(self) -> list[int]:
        """The addresses of the gradients that `holds` has seen."""


class Kernels(Protocol):
    """The kernels of one definition."""

    @property
    def fallbacks(self) -> Telling:
        """Tells where the definition serves instead of kernels."""

    @property
    def launched(self) -> tuple[str, ...]:
        """The types of devices whose kernels run while the processor goes on."""

    def undoing(self) -> AbstractContextManager[object]:
        """What the definition changes outside of itself in this block is undone."""

    def state(self) -> Hashable:
        """What the definition reads outside of its arguments now; None if that cannot be compared."""

    def known(self, state: Any, kind: Kind, device: torch.device) -> list[Variant]:
        """The variants of a kind so far, in the order in which they are tried; the list may be put in another order.

        Args:
            state: What the definition reads outside.
            kind: The kind.
            device: Where its parameters are.
        """

    def another(self, state: Any, wanted: Wanted) -> Variant:
        """One more variant.

        Raises:
            OpwrightError: If there can be none.
        """

    def watch(self, lists: list[list[torch.Tensor]], kept: dict[torch.Tensor, Any]) -> Watched | None:
        """Look at parameters, their gradients and their states; None if only Python can tell whether they move.

        Args:
            lists: The parameters of each group.
            kept: The states of all.
        """
