"""autocast: the dtypes and values that autocast gives the reference."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import torch

from opwright.auditing.case import Case
from opwright.auditing.families.autograd import gradients
from opwright.auditing.families.compilation import compiled, forward
from opwright.auditing.judge import Experiment, Judge
from opwright.auditing.witness import Seen
from opwright.checking.finding import Skipped


def under_autocast(experiment: Experiment, case: Case, dtype: torch.dtype = torch.bfloat16) -> Seen:
    """Run an experiment in float32 under autocast."""
    with torch.autocast(case.options.device.partition(":")[0], dtype):
        return experiment(_in_float32(case))


def backward_outside(case: Case) -> Seen:
    """Call under autocast and run backward outside, as training does."""
    single = _in_float32(case)
    leaves = single.leaves
    with torch.autocast(case.options.device.partition(":")[0], torch.bfloat16):
        loss = single.loss(*leaves)
    loss.backward()
    return {"gradient of input": [leaf.grad for leaf in leaves]}


def _in_float32(case: Case) -> Case:
    if not any(tensor.is_floating_point() for tensor in case.tensors):
        raise Skipped("no input is of floating point")
    return replace(case, sample=case.sample.map(lambda t: t.float() if t.is_floating_point() else t))


JUDGES = (
    Judge("bfloat16", partial(under_autocast, forward), differentiates=False),
    Judge("float16", partial(under_autocast, forward, dtype=torch.float16), differentiates=False),
    Judge("bfloat16, backward within", partial(under_autocast, gradients)),
    Judge("bfloat16, backward outside", backward_outside),
    Judge(
        "bfloat16, compiled",
        partial(under_autocast, partial(compiled, forward)),
        expected=partial(under_autocast, forward),
        differentiates=False,
    ),
)
