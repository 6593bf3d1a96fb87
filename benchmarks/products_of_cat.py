"""A product that reads a `cat`: one product of the cat, or one for each piece.

python benchmarks/products_of_cat.py [--json FILE]

For pieces of k₁ and k₂ columns and a weight of N columns, as `F.linear` has it: `cat` and one product, two products
that add up (`mm`, then `addmm_`), and `cat` alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import torch
from scorecard import Options, Row, Scorecard, medians_us, run_script

from opwright.benchmark.stopwatch import Thunk

ROWS = (1, 16, 64, 256, 1024)
PIECES = ((128, 128), (128, 1024), (1024, 1024), (4096, 4096))
COLUMNS = (1, 16, 128, 384, 1024)
MOST_WORK = 1.2e9


def measure(options: Options) -> Scorecard:
    """Race the ways for every size that does not take too long."""
    sizes = [
        (rows, left, right, columns)
        for rows, (left, right), columns in itertools.product(ROWS, PIECES, COLUMNS)
        if rows * (left + right) * columns <= MOST_WORK
    ]
    found = [_row(*size, options) for size in (sizes[:1] if options.quick else sizes)]
    return Scorecard("rows × (k₁ + k₂) × N, float32; µs", found, [])


def _row(rows: int, left: int, right: int, columns: int, options: Options) -> Row:
    a, b = torch.randn(rows, left), torch.randn(rows, right)
    medians = medians_us(_ways(a, b, torch.randn(columns, left + right).t()), options)
    return Row(f"{rows} × ({left} + {right}) × {columns}", medians | {"one / two": medians["one"] / medians["two"]})


def _ways(a: torch.Tensor, b: torch.Tensor, weight: torch.Tensor) -> Mapping[str, Thunk]:
    upper, lower = weight[: a.shape[1]], weight[a.shape[1] :]
    return {
        "one": lambda: torch.mm(torch.cat([a, b], 1), weight),
        "two": lambda: torch.mm(a, upper).addmm_(b, lower),
        "cat": lambda: torch.cat([a, b], 1),
    }


if __name__ == "__main__":
    run_script(measure, __doc__)
