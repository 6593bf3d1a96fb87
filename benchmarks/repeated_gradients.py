"""Backward passes given gradients that are one value repeated, as those of a `.sum()` are, against dense ones.

python benchmarks/repeated_gradients.py [--processor-time] [--json FILE]

Called as operators (`op.vjp()`), on one thread: what differs is how the cotangents lie in memory.
"""

from __future__ import annotations

import torch
from scorecard import Options, Row, Scorecard, Target, geometric_mean, medians_us, run_script
from torch import Tensor
from transforms import SIZES, Case, cases

MOST = 1.25


def measure(options: Options) -> Scorecard:
    """Time the backward pass of each operator with each gradient."""
    torch.set_num_threads(1)
    rows = [_row(case, shape, options) for shape in SIZES.values() for case in cases(*shape)]
    every = [row.figures["of all / dense"] or 0.0 for row in rows]
    target = Target("one value for all / dense", geometric_mean(every), "<=", MOST)
    return Scorecard("backward passes; µs", rows, [target])


def _row(case: Case, shape: tuple[int, int], options: Options) -> Row:
    operator, args = case
    backward = operator.vjp()
    outputs = operator.reference(*args)
    count = 1 if isinstance(outputs, Tensor) else len(outputs)
    cotangents = {
        "dense": torch.ones(shape),
        "one for all": torch.ones(()).expand(shape),
        "one for a row": torch.ones(shape[0], 1).expand(shape),
    }
    ways = {name: lambda given=given: backward(*args, *[given] * count) for name, given in cotangents.items()}
    medians = medians_us(ways, options)
    ratios = {"of all / dense": medians["one for all"] / medians["dense"]}
    return Row(f"{operator.name.split('::')[1]} {shape[0]}x{shape[1]}", {**medians, **ratios})


if __name__ == "__main__":
    run_script(measure, __doc__)
