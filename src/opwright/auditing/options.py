"""Options: how much work an audit may be."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Options:
    """How an audit is done.

    Attributes:
        dtype: The dtype of the samples; numerical derivatives are judged in float64 only.
        device: Where the samples are.
        steps: How many training steps the row that looks for leaks takes.
        quick: Compile with "aot_eager" whether or not a compiler is present, and leave out the rows that take many
            seconds: AOTInductor, ONNX, and processes that start afresh.
        only: Judge rows whose family or name contains one of these; all of them if there are none.
    """

    dtype: torch.dtype = torch.float64
    device: str = "cpu"
    steps: int = 10_000
    quick: bool = False
    only: tuple[str, ...] = ()

    def wants(self, family: str, name: str) -> bool:
        """Tell whether a row is to be judged."""
        return not self.only or any(text in f"{family}: {name}" for text in self.only)
