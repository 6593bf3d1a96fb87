"""A product that reads a `cat`: one product of the cat, or one for each piece.

    python benchmarks/products_of_cat.py

For pieces of k₁ and k₂ columns and a weight of N columns, as `F.linear` has it: the time of `cat` and one product, of
two products that add up (`mm`, then `addmm_`), and of `cat` alone, in microseconds of one thread's processor time.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Sequence

import torch

_ROWS = (1, 16, 64, 256, 1024)
_PIECES = ((128, 128), (128, 1024), (1024, 1024), (4096, 4096))
_COLUMNS = (1, 16, 128, 384, 1024)
_MOST_WORK = 1.2e9
_LEAST_S, _BUDGET_S, _MOST_ROUNDS = 2e-4, 0.25, 40


def main() -> None:
    """Print a line for each size."""
    torch.set_num_threads(1)
    print(f"{'rows':>5}{'k1':>6}{'k2':>6}{'N':>6}{'one':>10}{'two':>10}{'one/two':>9}{'cat':>10}")
    for rows, (left, right), columns in itertools.product(_ROWS, _PIECES, _COLUMNS):
        if rows * (left + right) * columns > _MOST_WORK:
            continue
        a, b = torch.randn(rows, left), torch.randn(rows, right)
        weight = torch.randn(columns, left + right).t()
        one, two, copy = interleaved_medians_us(ways(a, b, weight))
        print(f"{rows:5}{left:6}{right:6}{columns:6}{one:10.1f}{two:10.1f}{one / two:9.2f}{copy:10.1f}", flush=True)


def ways(a: torch.Tensor, b: torch.Tensor, weight: torch.Tensor) -> Sequence[Callable[[], torch.Tensor]]:
    """One product of the cat, two products, the cat."""
    upper, lower = weight[: a.shape[1]], weight[a.shape[1] :]
    return (
        lambda: torch.mm(torch.cat([a, b], 1), weight),
        lambda: torch.mm(a, upper).addmm_(b, lower),
        lambda: torch.cat([a, b], 1),
    )


def interleaved_medians_us(functions: Sequence[Callable[[], object]]) -> list[float]:
    """Median processor times of functions that take turns."""
    for function in functions:
        function()
    once = max(_seconds(functions[0], 1), 1e-6)
    repeats = max(1, int(_LEAST_S / once))
    rounds = max(7, min(_MOST_ROUNDS, int(_BUDGET_S / len(functions) / (once * repeats))))
    times = [[_seconds(function, repeats) for function in functions] for _ in range(rounds)]
    return [statistics.median(column) * 1e6 for column in zip(*times, strict=True)]


def _seconds(function: Callable[[], object], repeats: int) -> float:
    begin = time.thread_time()
    for _ in range(repeats):
        function()
    return (time.thread_time() - begin) / repeats


if __name__ == "__main__":
    main()
