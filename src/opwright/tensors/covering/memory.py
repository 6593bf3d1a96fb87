"""Memory: whether results lie in that of the first argument where dense ones do, and only there; writing tells."""

from __future__ import annotations

from typing import Any

import torch

from opwright.tensors.covering.calling import Call
from opwright.tensors.covering.calls.plan import other_of
from opwright.tensors.covering.calls.values import OTHER, SAMPLE


def in_other_memory(call: Call, found: Any, right: Any, own: Any) -> str:
    """Whether the result is a copy where the dense one is a view of the first argument, or the other way round.

    Args:
        call: A call with the sample as its first argument.
        found: Its result.
        right: The dense result, which is written to.
        own: The first argument of the dense call.
    """
    if not isinstance(right, torch.Tensor) or not isinstance(own, torch.Tensor) or right is own:
        return ""
    if not isinstance(found, call.subject.type) or not right.numel():
        return ""
    if right.layout is not torch.strided or own.layout is not torch.strided:
        return ""
    changes = _changes_when_written(call)
    if changes is None:
        return ""
    if right.untyped_storage().data_ptr() != own.untyped_storage().data_ptr():
        return "its result lies in the memory of its argument, where it should be a copy" if changes else ""
    before = own.detach().clone()
    right.detach().zero_()
    return "" if changes or torch.equal(before, own.detach()) else "its result is a copy, not a view"


def _changes_when_written(call: Call) -> bool | None:
    """Whether zeros in the result are seen in the argument; None if the type cannot be written to."""
    try:
        sample = call.subject.fresh()
        with torch.no_grad():
            result = call.made(sample)
            if result is sample:
                return None
            before = call.subject.dense(sample).clone()
            result.zero_()
            return not torch.equal(before, call.subject.dense(sample))
    except Exception:  # the type's own code
        return None


def is_stale(call: Call) -> str:
    """Whether a view that was made before does not see what a call changes in place.

    Args:
        call: A call that changes the sample, which is its first argument.
    """
    dense = call.subject.dense(call.subject.sample).clone()
    try:
        view = dense[...]
        args, kwargs = call.plan.filled(_dense_places(call, dense))
        call.spelling.function(*args, **kwargs)
        if view.shape != dense.shape or not torch.equal(view, dense):
            return ""  # what is defined of dense tensors alone
        with torch.no_grad():
            sample = call.subject.fresh()
            view = sample[...]
            call.made(sample)
            one, other = call.subject.dense(view), call.subject.dense(sample)
    except Exception:  # the type has no views, or this function none in place
        return ""
    same = one.shape == other.shape and torch.allclose(one, other, equal_nan=True)
    return "" if same else "a view that was made before does not see the change"


def _dense_places(call: Call, dense: torch.Tensor) -> dict[Any, Any]:
    return {SAMPLE: dense, OTHER: dense if call.side == "both" else other_of(dense)}
