"""Options: what an audit runs, and how much."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Options:
    """The options of an audit.

    Attributes:
        dtype: The dtype of the samples; numerical derivatives are tested in float64 only.
        device: Where the samples are.
        steps: How many training steps the row that looks for leaks takes.
        quick: Compile with "aot_eager" even if there is a C++ compiler, and leave out the rows that take many seconds:
            AOTInductor, ONNX, and spawned processes.
        only: Run the rows whose family or name contains one of these; all rows if it is empty.
    """

    dtype: torch.dtype = torch.float64
    device: str = "cpu"
    steps: int = 10_000
    quick: bool = False
    only: tuple[str, ...] = ()

    def wants(self, family: str, name: str) -> bool:
        """Whether to run a row."""
        return not self.only or any(text in f"{family}: {name}" for text in self.only)
