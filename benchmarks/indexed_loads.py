"""Elements that indices pick, in what follows: eager, and operators that pick them inside their kernels.

    python benchmarks/indexed_loads.py [NAME…]

Forward without gradients, at a small size, one in cache and one out of it: microseconds of one thread's processor time,
as medians of calls that take turns.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence

import torch
from torch.nn import functional

import opwright

Tensor = torch.Tensor
# Rows of a table, how many of them are picked, and their length.
_SIZES = {"small": (100, 8, 16), "in cache": (1000, 256, 64), "large": (50_000, 8192, 256)}
_LEAST_S, _BUDGET_S, _MOST_ROUNDS = 2e-4, 0.6, 60


@opwright.operator
def embedding_scaled(table: Tensor, ids: Tensor, positions: Tensor) -> Tensor:
    return functional.embedding(ids, table) * 3.0 + positions


@opwright.operator
def embedding_normalized(table: Tensor, ids: Tensor, weight: Tensor) -> Tensor:
    return functional.layer_norm(functional.embedding(ids, table), weight.shape, weight)


@opwright.operator
def rows_and_bias(table: Tensor, ids: Tensor, bias: Tensor) -> Tensor:
    return table.index_select(0, ids) + bias


@opwright.operator
def columns_scaled(table: Tensor, columns: Tensor) -> Tensor:
    return table.index_select(1, columns) * 2.0


@opwright.operator
def elements_scaled(x: Tensor, index: Tensor) -> Tensor:
    return x.gather(1, index) * 2.0


@opwright.operator
def rows_by_gather(table: Tensor, ids: Tensor) -> Tensor:
    return table.gather(0, ids.unsqueeze(1).expand(-1, table.shape[1])) * 2.0


@opwright.operator
def likelihood(x: Tensor, target: Tensor) -> Tensor:
    return -torch.log_softmax(x, -1).gather(1, target.unsqueeze(1)).squeeze(1)


@opwright.operator
def rows_transposed(table: Tensor, ids: Tensor, other: Tensor) -> Tensor:
    return table[ids].t() * other


def arguments(name: str, rows: int, picked: int, length: int) -> tuple[Tensor, ...]:
    """What an operator is called with at a size."""
    table, ids = torch.randn(rows, length), torch.randint(rows, (picked,))
    return {
        "embedding_scaled": (table, ids, torch.randn(picked, length)),
        "embedding_normalized": (table, ids, torch.randn(length)),
        "rows_and_bias": (table, ids, torch.randn(length)),
        "columns_scaled": (table, torch.randint(length, (length,))),
        "elements_scaled": (torch.randn(picked, length), torch.randint(length, (picked, length))),
        "rows_by_gather": (table, ids),
        "likelihood": (torch.randn(picked, length), torch.randint(length, (picked,))),
        "rows_transposed": (table, ids, torch.randn(length, picked)),
    }[name]


OPERATORS = {
    operator.reference.__name__: operator
    for operator in (
        *(embedding_scaled, embedding_normalized, rows_and_bias, columns_scaled, elements_scaled, rows_by_gather),
        *(likelihood, rows_transposed),
    )
}


def main(names: Sequence[str]) -> None:
    """Print a line for each operator and size."""
    torch.set_num_threads(1)
    print(f"{'':22}{'size':10}{'eager':>10}{'picked':>10}{'ratio':>8}")
    for name in names or OPERATORS:
        for size, (rows, picked, length) in _SIZES.items():
            given = arguments(name, rows, picked, length)
            with torch.no_grad():
                eager, own = _medians_us(OPERATORS[name], given)
            print(f"{name:22}{size:10}{eager:10.1f}{own:10.1f}{eager / own:8.2f}", flush=True)


def _medians_us(operator: opwright.Operator, given: Sequence[Tensor]) -> list[float]:
    ways: tuple[Callable[..., Tensor], ...] = (operator.reference, operator)
    for way in ways:
        way(*given)
    once = max(_seconds(operator.reference, given, 1), 1e-6)
    repeats = max(1, int(_LEAST_S / once))
    rounds = max(7, min(_MOST_ROUNDS, int(_BUDGET_S / (2 * once * repeats))))
    times = [[_seconds(way, given, repeats) for way in ways] for _ in range(rounds)]
    return [statistics.median(column) * 1e6 for column in zip(*times, strict=True)]


def _seconds(function: Callable[..., object], given: Sequence[Tensor], repeats: int) -> float:
    begin = time.thread_time()
    for _ in range(repeats):
        function(*given)
    return (time.thread_time() - begin) / repeats


if __name__ == "__main__":
    main(sys.argv[1:])
