"""bench: race the rungs of an operator against the reference and against `torch.compile`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from opwright.benchmark.gpu_clock import GpuClock
from opwright.benchmark.machine import this_machine
from opwright.benchmark.race import race
from opwright.benchmark.stopwatch import Measure, Plan
from opwright.benchmark.timings import COMPILED, REFERENCE, BenchReport, Entry
from opwright.checking.subject import WHOLE_OPERATOR, Candidate, subject_of
from opwright.operators.base import BaseOperator
from opwright.samples import Progress, SampleFactory


def bench(
    subject: BaseOperator | Callable[..., Any],
    reference: Callable[..., Any] | None = None,
    samples: SampleFactory | None = None,
    *,
    dtype: torch.dtype = torch.float32,
    device: str = "cpu",
    compile: bool = True,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> BenchReport:
    """Time an operator, rung by rung, or any callable, beside the reference; judge the results afterwards.

    The peer "torch.compile" is compiled anew for each sample, for exactly its sizes: the best it can do. This resets
    what else was compiled in this process.

    Args:
        subject: An operator, or any callable.
        reference: A function of PyTorch operations; an operator has its own.
        samples: Makes the calls to time; an operator may have its own.
        dtype: The dtype of the samples.
        device: Where the samples are.
        compile: Whether `torch.compile` of the reference takes part.
        plan: How long to measure.
        progress: Told what is under way.

    Raises:
        SamplesMissing: There are no samples.
        ReferenceMissing: The subject is not an operator and no reference is given.
    """
    judged = subject_of(subject, reference, samples, "it cannot be measured")
    candidates, missing = judged.candidates(device)
    chosen = judged.make_samples(device, dtype)
    entries: list[Entry] = []
    for done, sample in enumerate(chosen):

        def tell(what: str, done: int = done, name: str = sample.name) -> None:
            if progress:
                progress(f"{name}: {what}", done, len(chosen))

        contenders = contenders_of(judged.reference, candidates, compile)
        entries += race(sample, contenders, plan=plan or Plan(), measure=_measure_on(device), tell=tell)
    kind = str(dtype).removeprefix("torch.")
    return BenchReport(judged.name, kind, device, this_machine(), tuple(entries), missing)


def contenders_of(
    reference: Callable[..., Any], candidates: Sequence[Candidate], compile: bool
) -> dict[str, Candidate]:
    """Who races: the reference, each rung, and perhaps `torch.compile`, which is started anew."""
    contenders = {REFERENCE: Candidate(REFERENCE, reference)}
    contenders |= {candidate.rung: candidate for candidate in candidates if candidate.rung != WHOLE_OPERATOR}
    if compile:
        contenders[COMPILED] = Candidate(COMPILED, compiled(reference))
    return contenders


def compiled(reference: Callable[..., Any]) -> Callable[..., Any]:
    """Compile for the sizes of the first call only; forget earlier ones, which would count towards a limit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of PyTorch, about parts of itself
        torch.compiler.reset()
        return torch.compile(reference, dynamic=False)


def _measure_on(device: str) -> Measure | None:
    return GpuClock(device) if torch.device(device).type == "cuda" else None
