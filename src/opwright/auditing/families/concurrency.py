"""many at once: threads that call and run backward concurrently, and worker processes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from opwright.auditing.case import Case, Tensors, tensors_of
from opwright.auditing.judge import Judge
from opwright.auditing.names import demand_importable
from opwright.auditing.witness import Seen
from opwright.checking.calls import differentiable, every_gradient
from opwright.checking.finding import Skipped
from opwright.samples import Sample

_THREADS = 8
_ROUNDS = 12
_TIMEOUT_S = 60
_SWITCH_S = 1e-5
_ITEMS = 4

Work = Callable[[Case, int], list[Tensors]]


class Calls(Dataset[Tensors]):
    """A data set whose items are calls of a function, each with different values."""

    def __init__(self, function: Callable[..., Any], sample: Sample) -> None:
        self._function = function
        self._sample = sample

    def __len__(self) -> int:
        return _ITEMS

    def __getitem__(self, index: int) -> Tensors:
        sample = self._sample.map(lambda tensor: _scaled(tensor, index))
        return tensors_of(self._function(*sample.args, **sample.kwargs))


def in_turn(case: Case, work: Work) -> Seen:
    """Make the same calls one after another."""
    before = torch.get_rng_state()
    case(*case.inputs)
    if not torch.equal(before, torch.get_rng_state()):
        raise Skipped("it draws random numbers, and threads share the generator")
    return {f"in thread {index}, round and result": work(case, index) for index in range(_THREADS)}


def at_once(case: Case, work: Work) -> Seen:
    """Make the calls in many threads."""
    with _impatient(), ThreadPoolExecutor(_THREADS) as pool:
        found = list(pool.map(partial(work, case), range(_THREADS)))
    return {f"in thread {index}, round and result": results for index, results in enumerate(found)}


def backward_at_once(case: Case) -> Seen:
    """Run forward in this thread, and the backward passes in many."""
    recorded = [_recorded(case, index) for index in range(_THREADS)]
    with _impatient(), ThreadPoolExecutor(_THREADS) as pool:
        found = list(pool.map(lambda pair: [every_gradient(*pair)], recorded))
    return {f"in thread {index}, round and result": results for index, results in enumerate(found)}


def worker_processes(case: Case, *, start: str, workers: int) -> Seen:
    """Call the function in the workers of a DataLoader."""
    if start == "spawn":
        demand_importable(case.function)
    loader = DataLoader(
        Calls(case.function, case.sample),
        batch_size=None,
        num_workers=workers,
        multiprocessing_context=start,
        timeout=_TIMEOUT_S,
    )
    return {"item": [tensors_of(item) for item in loader]}


def in_this_process(case: Case) -> Seen:
    """Call the function in this process."""
    items = Calls(case.function, case.sample)
    return {"item": [items[index] for index in range(len(items))]}


def _forward(case: Case, thread: int) -> list[Tensors]:
    inputs = [_scaled(tensor, thread) for tensor in case.inputs]
    with torch.no_grad():
        return [case(*inputs) for _ in range(_ROUNDS)]


def _train(case: Case, thread: int, rounds: int = _ROUNDS) -> list[Tensors]:
    return [every_gradient(*_recorded(case, thread)) for _ in range(rounds)]


def _recorded(case: Case, thread: int) -> tuple[torch.Tensor, list[torch.Tensor]]:
    leaves = [_scaled(tensor, thread).requires_grad_() for tensor in case.inputs]
    return case.loss(*leaves), leaves


def _scaled(tensor: torch.Tensor, index: int) -> torch.Tensor:
    return tensor.detach() * (1 - index / 16) if differentiable(tensor) else tensor.clone()


@contextmanager
def _impatient() -> Iterator[None]:
    """Make threads switch often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


JUDGES = (
    Judge(
        "calls from many threads",
        partial(at_once, work=_forward),
        partial(in_turn, work=_forward),
        differentiates=False,
    ),
    Judge("training in many threads", partial(at_once, work=_train), partial(in_turn, work=_train)),
    Judge("backward in many threads", backward_at_once, partial(in_turn, work=partial(_train, rounds=1))),
    Judge(
        "DataLoader workers, fork",
        partial(worker_processes, start="fork", workers=2),
        in_this_process,
        differentiates=False,
    ),
    Judge(
        "DataLoader workers, spawn",
        partial(worker_processes, start="spawn", workers=1),
        in_this_process,
        differentiates=False,
        slow=True,
    ),
)
