"""copies: copy and pickle a module that calls the operator."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import torch

from opwright.auditing.case import Case
from opwright.auditing.families.autograd import gradients
from opwright.auditing.families.compilation import forward
from opwright.auditing.judge import Judge
from opwright.auditing.modules import Calling
from opwright.auditing.names import demand_importable
from opwright.auditing.witness import Seen


def pickled(case: Case) -> Seen:
    """Pickle and unpickle a module that calls the function, and call it."""
    demand_importable(case.function)
    return forward(replace(case, function=pickle.loads(pickle.dumps(Calling(case.function)))))


def without_gradients(case: Case) -> Seen:
    """Call the function under `no_grad`."""
    leaves = case.leaves
    with torch.no_grad():
        outputs = case(*leaves)
    return {"output": outputs, "requires_grad": [output.requires_grad for output in outputs]}


def in_inference_mode(case: Case) -> Seen:
    """Call the function in inference mode, with tensors created there."""
    with torch.inference_mode():
        outputs = case(*case.leaves)
        return {"output": outputs, "is_inference": [output.is_inference() for output in outputs]}


JUDGES = (
    Judge(
        "deepcopy of a module",
        lambda case: gradients(replace(case, function=copy.deepcopy(Calling(case.function)))),
        expected=gradients,
    ),
    Judge("pickle of a module", pickled, expected=forward, differentiates=False),
    Judge("no_grad", without_gradients, differentiates=False),
    Judge("inference_mode", in_inference_mode, differentiates=False),
)
