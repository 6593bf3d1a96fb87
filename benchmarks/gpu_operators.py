"""What benchmarks/gpu.py measures: functions, and how to make their arguments on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from rows import cross_entropy, layer_norm, rms_norm, softmax, swiglu

from opwright.samples import Sample

Tensor = torch.Tensor
Function = Callable[..., Any]
ELEMENTS = 64 << 20


def gated(x: Tensor, y: Tensor) -> Tensor:
    return torch.tanh(x) * y


def cell(gates: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    i, o, g = gates.chunk(3, dim=-1)
    new_cell = old_cell + torch.nn.functional.elu(g) * torch.sigmoid(i)
    return torch.tanh(new_cell) * torch.sigmoid(o), new_cell


@dataclass(frozen=True, slots=True)
class Course:
    """One function at one size in one dtype.

    Attributes:
        function: The function as written.
        kinds: One letter for each argument: x a matrix, v a vector for its columns, t a class for each of its rows, w a
            matrix three times as wide.
        rows, columns: The size of x.
        dtype: Of the floating arguments.
        passes: How many elements as large as x forward and backward move to and from memory, at least; None if it is
            not asked.
    """

    function: Function
    kinds: str
    rows: int
    columns: int
    dtype: torch.dtype
    passes: int | None = None

    @property
    def name(self) -> str:
        """What it is called in a table."""
        kind = str(self.dtype).removeprefix("torch.")
        return f"{self.function.__name__}, {self.rows} × {self.columns}, {kind}"

    @property
    def bytes_moved(self) -> int | None:
        """How many bytes forward and backward move together, at least."""
        return self.passes and self.passes * self.rows * self.columns * self.dtype.itemsize

    def sample(self, device: str) -> Sample:
        """Make the arguments; the same ones each time."""
        generator = torch.Generator(device).manual_seed(0)
        made: list[Tensor] = []
        for kind in self.kinds:
            if kind == "t":
                made.append(torch.randint(self.columns, (self.rows,), generator=generator, device=device))
                continue
            width = 3 * self.columns if kind == "w" else self.columns
            shape = (width,) if kind == "v" else (self.rows, width)
            made.append(torch.randn(shape, generator=generator, device=device).to(self.dtype))
        return Sample(tuple(made), {}, self.name)


def courses(quick: bool) -> Sequence[Course]:
    """All that is measured: element-wise work at 64 M elements, rows of 1k to 32k, and the rest."""
    dtypes = (torch.float32,) if quick else (torch.float32, torch.bfloat16)
    wide = (1024,) if quick else (1024, 4096, 32768)
    elements = 1 << 16 if quick else ELEMENTS
    rows = ((rms_norm, "xv"), (layer_norm, "xvv"), (softmax, "x"), (cross_entropy, "xt"))
    return [
        *(Course(gated, "xx", elements // 4096, 4096, dtype, passes=8) for dtype in dtypes),
        *(Course(f, k, elements // columns, columns, dtype) for f, k in rows for columns in wide for dtype in dtypes),
        *(Course(swiglu, "xx", elements // 4096, 4096, dtype, passes=8) for dtype in dtypes),
        *(Course(cell, "wx", elements // 4 // 1024, 1024, dtype, passes=16) for dtype in dtypes),
    ]
