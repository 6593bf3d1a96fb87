"""Memory that is another's, such as that of a NumPy array: a trace knows only the numbers that were in it."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch.utils._python_dispatch import _disable_current_modes

from opwright.errors import NoKernel
from opwright.tracing.interface.memory import memory_of

_HINT = "use a copy, which .clone() makes, or pass it as a tensor"


@dataclass(slots=True)
class Lent:
    """The tensors of a trace in such memory.

    Attributes:
        tensors: Those that the function made, a copy of each as it was then, and what stands for it.
    """

    tensors: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = field(default_factory=list)

    def standing_for(self, made: torch.Tensor, stands: torch.Tensor) -> torch.Tensor:
        """Note what stands for a tensor if its memory is another's; torch can make its own larger."""
        with _disable_current_modes():
            if not made.untyped_storage().resizable():
                self.tensors.append((made, made.clone(), stands))
        return stands

    def refuse(self, tensor: torch.Tensor) -> None:
        """Refuse that a tensor is changed in place, which the owner of its memory would see, or is returned.

        Raises:
            NoKernel: If it lies in such memory.
        """
        if any(memory_of(tensor) == memory_of(stands) for _, _, stands in self.tensors):
            fact = "the function changes, or returns, memory that it shares with an object that is no tensor"
            raise NoKernel(fact, hint=_HINT)

    def ensure_same(self) -> None:
        """Compare the numbers again, when the function has run.

        Raises:
            NoKernel: If there are others by now: what reads them may have read these.
        """
        with _disable_current_modes():
            if not all(torch.equal(_bits(made), _bits(before)) for made, before, _ in self.tensors):
                raise NoKernel("an object that shares its memory with a tensor changes meanwhile", hint=_HINT)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)
