"""ahead: build what a race needs before it begins, so that parts of the work can be done in processes side by side.

Kernels come into the cache of opwright, and what `torch.compile` compiles into that of Inductor.
"""

from __future__ import annotations

import contextlib
import warnings

import torch

from opwright.benchmark.measure import contenders_of
from opwright.benchmark.race import course_of, runner_of
from opwright.benchmark.second_order import penalty_of
from opwright.benchmark.timings import REFERENCE
from opwright.checking.parts import part_of
from opwright.checking.subject import subject_of
from opwright.operators.base import BaseOperator
from opwright.samples import Progress


def build_ahead(
    operator: BaseOperator,
    part: str,
    progress: Progress,
    *,
    dtype: torch.dtype = torch.float32,
    device: str = "cpu",
    compile: bool = True,
    second_order: bool = False,
) -> None:
    """Run each contender once on each sample, and ignore what comes of it: the race itself tells.

    Args:
        operator: What is measured.
        part: "i/n", which of n parts of this work.
        progress: Told what is under way.
        dtype: The dtype of the samples.
        device: Where the samples are.
        compile: Whether `torch.compile` takes part.
        second_order: Whether gradients of gradients are measured too.
    """
    judged = subject_of(operator, None, None, "it cannot be measured")
    candidates, _ = judged.candidates(device)
    names = [name for name in contenders_of(judged.reference, candidates, compile) if name != REFERENCE]
    pairs = [(sample, name) for sample in judged.make_samples(device, dtype) for name in names]
    mine = part_of(pairs, part)
    for done, (sample, name) in enumerate(mine):
        progress(f"{sample.name}: build {name}", done, len(mine))
        contenders = contenders_of(judged.reference, candidates, compile)
        with contextlib.suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runner_of(contenders[name], course_of(sample, contenders[REFERENCE]))
            if second_order:
                penalty_of(sample, contenders[name])()
