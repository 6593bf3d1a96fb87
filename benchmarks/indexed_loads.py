"""Elements that indices gather, in what follows: eager, and operators that gather them inside their kernels.

python benchmarks/indexed_loads.py [--json FILE]

Forward without gradients, at a small size, one in cache and one out of it.
"""

from __future__ import annotations

import torch
from scorecard import Options, Row, Scorecard, geometric_mean, medians_us, run_script
from torch.nn import functional

import opwright

Tensor = torch.Tensor
# Rows of a table, how many of them are gathered, and their length.
SIZES = {"small": (100, 8, 16), "in cache": (1000, 256, 64), "large": (50_000, 8192, 256)}


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


def arguments(name: str, rows: int, gathered: int, length: int) -> tuple[Tensor, ...]:
    """What an operator is called with at a size."""
    table, ids = torch.randn(rows, length), torch.randint(rows, (gathered,))
    return {
        "embedding_scaled": (table, ids, torch.randn(gathered, length)),
        "embedding_normalized": (table, ids, torch.randn(length)),
        "rows_and_bias": (table, ids, torch.randn(length)),
        "columns_scaled": (table, torch.randint(length, (length,))),
        "elements_scaled": (torch.randn(gathered, length), torch.randint(length, (gathered, length))),
        "rows_by_gather": (table, ids),
        "likelihood": (torch.randn(gathered, length), torch.randint(length, (gathered,))),
        "rows_transposed": (table, ids, torch.randn(length, gathered)),
    }[name]


OPERATORS = {
    operator.reference.__name__: operator
    for operator in (
        *(embedding_scaled, embedding_normalized, rows_and_bias, columns_scaled, elements_scaled, rows_by_gather),
        *(likelihood, rows_transposed),
    )
}


def measure(options: Options) -> Scorecard:
    """Race operators with the functions they come from."""
    names = list(OPERATORS)[:1] if options.quick else OPERATORS
    sizes = {"small": SIZES["small"]} if options.quick else SIZES
    rows = [_row(name, size, sizes[size], options) for name in names for size in sizes]
    mean = geometric_mean([ratio for row in rows if (ratio := row.figures["eager / opwright"]) is not None])
    return Scorecard("indexed loads, forward; µs", [*rows, Row("geometric mean", {"eager / opwright": mean})], [])


def _row(name: str, size: str, numbers: tuple[int, int, int], options: Options) -> Row:
    operator, given = OPERATORS[name], arguments(name, *numbers)
    with torch.no_grad():
        medians = medians_us(
            {"opwright": lambda: operator(*given), "eager": lambda: operator.reference(*given)}, options
        )
        assert operator.last_rung == "cpp", f"{name} was served by {operator.last_rung}"
    return Row(f"{name}, {size}", medians | {"eager / opwright": medians["eager"] / medians["opwright"]})


if __name__ == "__main__":
    run_script(measure, __doc__)
