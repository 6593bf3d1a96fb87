"""numerical derivatives: PyTorch's own gradcheck and gradgradcheck, with every option that tests something more."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch.autograd.gradcheck import GradcheckError

from opwright.auditing.case import Case
from opwright.auditing.judge import Judge
from opwright.auditing.witness import Seen
from opwright.checking.finding import Fault, Skipped

_WIDEST = (torch.float64, torch.complex128)
_ELEMENTWISE_UP_TO = 200  # a numerical Jacobian costs two calls for each element; above it, random projections


def gradcheck(case: Case, **options: Any) -> Seen:
    """Compare first derivatives with differences of values."""
    return _checked(torch.autograd.gradcheck, case, options)


def gradgradcheck(case: Case, **options: Any) -> Seen:
    """Compare second derivatives with differences of first ones."""
    return _checked(torch.autograd.gradgradcheck, case, options)


def _checked(checker: Any, case: Case, options: dict[str, Any]) -> Seen:
    leaves = case.leaves
    if any(leaf.dtype not in _WIDEST for leaf in leaves):
        fact = "below float64, a difference of nearly equal numbers is all rounding error"
        raise Skipped(fact, hint="audit in float64")
    large = sum(leaf.numel() for leaf in leaves) > _ELEMENTWISE_UP_TO
    try:
        checker(case.floats, leaves, fast_mode=large, **options)
    except GradcheckError as error:
        raise Fault(" ".join(str(error).split())[:400]) from error
    return {}


JUDGES = (
    Judge("gradcheck", gradcheck),
    Judge("gradgradcheck", gradgradcheck),
    Judge("gradcheck, batched gradients", partial(gradcheck, check_batched_grad=True)),
    Judge("gradgradcheck, batched gradients", partial(gradgradcheck, check_batched_grad=True)),
    Judge(
        "gradcheck, forward mode",
        partial(gradcheck, check_forward_ad=True, check_backward_ad=False),
    ),
    Judge(
        "gradcheck, forward mode, batched",
        partial(gradcheck, check_forward_ad=True, check_backward_ad=False, check_batched_forward_grad=True),
    ),
    Judge(
        "gradgradcheck, forward over reverse",
        partial(gradgradcheck, check_fwd_over_rev=True, check_rev_over_rev=False, check_undefined_grad=False),
    ),
)
