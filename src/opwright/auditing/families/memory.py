"""memory tools: checkpoints, saved-tensor hooks, offloading; and no leaks over many steps."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.checkpoint import checkpoint

from opwright.auditing.case import Case, loss_of
from opwright.auditing.families.autograd import accumulated, gradients
from opwright.auditing.judge import Judge
from opwright.auditing.witness import Seen
from opwright.checking.calls import differentiable
from opwright.checking.finding import Fault, Skipped

_STEPS_BEFORE = 50
_FEW_TENSORS = 8
_PAGE_BYTES = 4096
_MOST_BYTES = 16 << 20  # allocators keep some memory in any case
_STATM = Path("/proc/self/statm")


def checkpointed(case: Case, *, reentrant: bool) -> Seen:
    """Checkpoint: recompute saved tensors in the backward pass."""
    leaves = case.leaves
    outputs = checkpoint(case.floats, *leaves, use_reentrant=reentrant)
    loss_of(outputs).backward()
    return {"gradient of input": [accumulated(leaf) for leaf in leaves]}


def saved_through_hooks(case: Case) -> Seen:
    """Pack saved tensors into other objects, and unpack the same values."""
    with saved_tensors_hooks(_doubled, _halved):
        return gradients(case)


def kept_aside(case: Case) -> Seen:
    """Save copies through hooks, delete the inputs, and test that their memory is free, as memory tools expect."""
    given = [leaf.clone() for leaf in case.leaves]
    memory = [StorageWeakRef(tensor.untyped_storage()) for tensor in given]
    with saved_tensors_hooks(lambda tensor: tensor.detach().clone(), lambda tensor: tensor):
        outputs = case(*given)
    given.clear()
    gc.collect()
    return {"memory of input is kept": [not kept.expired() for kept in memory], "requires_grad": _asking(outputs)}


def saved_on_cpu(case: Case) -> Seen:
    """Keep saved tensors in CPU memory."""
    with save_on_cpu():
        return gradients(case)


def many_steps(case: Case, step: Callable[[Case], None]) -> Seen:
    """Take many steps; compare the number of tensors and the memory of the process before and after."""
    for _ in range(_STEPS_BEFORE):
        step(case)
    steps = case.options.steps
    tensors_before, bytes_before = _live_tensors(), _resident_bytes()
    for _ in range(steps):
        step(case)
    tensors, kept_bytes = _live_tensors() - tensors_before, _resident_bytes() - bytes_before
    if tensors > max(_FEW_TENSORS, steps // 100):
        raise Fault(f"{tensors} tensors are left behind by {steps} steps")
    if kept_bytes > max(_MOST_BYTES, 100 * steps):
        raise Fault(f"{kept_bytes >> 20} MiB are left behind by {steps} steps")
    return {}


def _asking(outputs: Sequence[torch.Tensor]) -> list[bool]:
    return [output.requires_grad for output in outputs]


def _train(case: Case) -> None:
    case.loss(*case.leaves).backward()


def _infer(case: Case) -> None:
    with torch.no_grad():
        case(*case.inputs)


def _live_tensors() -> int:
    gc.collect()
    kinds = Counter(map(type, gc.get_objects()))
    return sum(count for kind, count in kinds.items() if issubclass(kind, torch.Tensor))


def _resident_bytes() -> int:
    """Return 0 where the system does not tell."""
    return int(_STATM.read_text().split()[1]) * _PAGE_BYTES if _STATM.exists() else 0


def _doubled(tensor: torch.Tensor) -> torch.Tensor:
    if not isinstance(tensor, torch.Tensor):
        raise Skipped("what it saves is not a tensor")
    return tensor * 2 if differentiable(tensor) else tensor.clone()


def _halved(tensor: torch.Tensor) -> torch.Tensor:
    return tensor / 2 if differentiable(tensor) else tensor


JUDGES = (
    Judge("checkpoint", partial(checkpointed, reentrant=False), expected=gradients),
    Judge("checkpoint, use_reentrant=True", partial(checkpointed, reentrant=True), expected=gradients),
    Judge("saved_tensors_hooks", saved_through_hooks, expected=gradients),
    Judge("nothing is kept aside", kept_aside),
    Judge("save_on_cpu", saved_on_cpu, expected=gradients),
    Judge("no leak, training", partial(many_steps, step=_train), expected=lambda case: {}),
    Judge("no leak, inference", partial(many_steps, step=_infer), expected=lambda case: {}, differentiates=False),
)
