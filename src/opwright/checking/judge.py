"""check: test every rung of an operator. The table of checks is here; each has its own file in `checks/`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import torch

from opwright.checking.checks.derivatives import gradcheck, gradgradcheck
from opwright.checking.checks.edges import edges
from opwright.checking.checks.forward_mode import forward_mode
from opwright.checking.checks.gradients import gradients
from opwright.checking.checks.layouts import layouts
from opwright.checking.checks.opcheck import opcheck
from opwright.checking.checks.refusals import refusals
from opwright.checking.checks.second_use import same_tensor_twice, some_gradients, two_backward_passes, unused_output
from opwright.checking.checks.special_values import special_values
from opwright.checking.checks.values import values
from opwright.checking.finding import Fault, Finding, Skipped, one_line
from opwright.checking.parts import in_parts, part_of
from opwright.checking.subject import COMPOSED, Candidate, subject_of
from opwright.checking.trial import Trial, material_of
from opwright.checking.verdict import SERVED, Row, Status, Verdict, together
from opwright.errors import CheckUnknown, NoKernel, RungMissing
from opwright.operators.base import BaseOperator
from opwright.samples import DEFAULT_DTYPES, Progress, Sample, SampleFactory


@dataclass(frozen=True, slots=True)
class Check:
    """A check: its function, its name in reports, its samples, and whether a quick check includes it."""

    name: str
    judge: Callable[[Trial, Sample], Finding]
    samples: Callable[[Trial], Sequence[Sample]]
    quick: bool = False


_given, _tiny = attrgetter("material.given"), attrgetter("material.tiny")


def _tiny_and_wide(trial: Trial) -> Sequence[Sample]:
    """Vector code begins beyond the tiny sizes."""
    return [*trial.material.tiny, trial.material.given[0]]


def _edges(trial: Trial) -> Sequence[Sample]:
    if not trial.material.edges:
        raise Skipped("the samples have no method `small`", hint="opwright.shapes(...) makes samples that have one")
    return trial.material.edges


def _tiny_of_the_whole(trial: Trial) -> Sequence[Sample]:
    return [] if trial.candidate.pinned else trial.material.tiny[:1]


CHECKS: tuple[Check, ...] = (
    Check("values", values, _given, quick=True),
    Check("gradients", gradients, _given, quick=True),
    Check("gradcheck", gradcheck, lambda trial: [trial.material.tiny_double]),
    Check("gradgradcheck", gradgradcheck, lambda trial: [trial.material.tiny_double]),
    Check("forward mode", forward_mode, _tiny),
    Check("layouts", layouts, _tiny_and_wide, quick=True),
    Check("edge sizes", edges, _edges),
    Check("special values", special_values, _tiny_and_wide, quick=True),
    Check("errors", refusals, _tiny, quick=True),
    Check("same tensor twice", same_tensor_twice, _tiny),
    Check("some gradients", some_gradients, _tiny),
    Check("two backward passes", two_backward_passes, _tiny, quick=True),
    Check("unused output", unused_output, _tiny, quick=True),
    Check("opcheck", opcheck, _tiny_of_the_whole),
)
_NAMES = tuple(each.name for each in CHECKS)


def check(
    subject: BaseOperator | Callable[..., Any],
    reference: Callable[..., Any] | None = None,
    samples: SampleFactory | None = None,
    *,
    dtypes: Sequence[torch.dtype] = DEFAULT_DTYPES,
    device: str = "cpu",
    only: Sequence[str] = (),
    quick: bool = False,
    progress: Progress | None = None,
    part: str = "",
    executor: Executor | None = None,
    parts: int = 8,
) -> Verdict:
    """Test an operator, each of its rungs, or any callable, against a reference.

    Args:
        subject: An operator, tested rung by rung and as a whole, or any callable.
        reference: A function of PyTorch operations that defines what is right; an operator has its own.
        samples: Makes the test calls; an operator may have its own.
        dtypes: The dtypes of the samples; checks that need only one dtype use the first.
        device: Where the samples are.
        only: Run the checks whose "rung: name" contains one of these; all checks if it is empty.
        quick: Run the checks that need few builds, on the smallest sample. The verdict lists what was left out.
        progress: Called before each check.
        part: "i/n" runs one of n parts of the checks; all together are the whole check.
        executor: Of `concurrent.futures`: runs all parts, perhaps in other processes or on other machines, which must
            be able to import the subject.
        parts: How many parts an executor is given.

    Raises:
        SamplesMissing: There are no samples.
        ReferenceMissing: The subject is not an operator and no reference is given.
        CheckUnknown: No check has a name that `only` asks for.
        ValueError: `part` is not written as "i/n".
    """
    if executor is not None:
        options: dict[str, Any] = {"dtypes": dtypes, "device": device, "only": only, "quick": quick}
        return together(in_parts(executor, parts, check, subject, reference, samples, **options))
    judged = subject_of(subject, reference, samples, "it cannot be checked")
    candidates, missing = judged.candidates(device)
    material = material_of(judged, tuple(dtypes), device, quick=quick)
    trials = [Trial(candidate, judged.reference, material, judged.overload) for candidate in candidates]
    steps = [(trial, step) for trial in trials for step in CHECKS if _wanted(trial, step, only, quick)]
    names = [_full_name(trial, step) for trial in trials for step in CHECKS]
    if unknown := [text for text in only if not any(text in name for name in names)]:
        raise CheckUnknown(f"no check is called {' or '.join(unknown)}", hint=f"the checks are {', '.join(_NAMES)}")
    if not steps:
        raise CheckUnknown(f"the quick check leaves {' and '.join(only)} out", hint="leave out quick=True")
    ran = {step.name for _, step in steps}
    steps = list(part_of(steps, part))
    rows = [Row(rung, "available", "", "skipped", reason) for rung, reason in missing.items()]
    for done, (trial, step) in enumerate(steps):
        if progress:
            progress(f"{trial.candidate.rung}: {step.name}", done, len(steps))
        rows += _rows(trial, step)
    if not only:
        rows += [_service(candidate, part) for candidate in candidates if candidate.pinned]
    return Verdict(judged.name, tuple(rows), tuple(name for name in _NAMES if name not in ran), quick, part)


def _wanted(trial: Trial, step: Check, only: Sequence[str], quick: bool) -> bool:
    name = _full_name(trial, step)
    return (step.quick or not quick) and (not only or any(text in name for text in only))


def _full_name(trial: Trial, step: Check) -> str:
    return f"{trial.candidate.rung}: {step.name}"


def _rows(trial: Trial, step: Check) -> Iterator[Row]:
    try:
        samples = step.samples(trial)
    except Skipped as reason:
        yield _row(trial, step, "", "skipped", Finding(str(reason)))
        return
    for sample in samples:
        served_before = len(trial.candidate.served_by)
        status, finding = _judged(trial, step, sample)
        strangers = {rung for rung in trial.candidate.served_by[served_before:] if rung != trial.candidate.rung}
        if status == "passed" and trial.candidate.pinned and strangers:
            status, finding = "skipped", Finding(f"{_servants(strangers)} serves such calls")
        yield _row(trial, step, sample.name, status, finding)


def _judged(trial: Trial, step: Check, sample: Sample) -> tuple[Status, Finding]:
    try:
        return "passed", step.judge(trial, sample)
    except Fault as fault:
        return "failed", fault.finding
    except Skipped as reason:
        return "skipped", Finding(str(reason))
    except (NoKernel, RungMissing) as refusal:
        return "skipped", Finding(f"your function serves such calls: {refusal.fact}")
    except Exception as error:
        return "failed", Finding(f"raises {one_line(error)}")


def _row(trial: Trial, step: Check, sample: str, status: Status, finding: Finding) -> Row:
    return Row(trial.candidate.rung, step.name, sample, status, finding.detail, finding.error, finding.eager_error)


def _service(candidate: Candidate, part: str) -> Row:
    """Replace the row of a pinned rung that served no call: what passed was computed by other rungs."""
    if candidate.rung in candidate.served_by:
        return Row(candidate.rung, SERVED, "", "passed")
    if part:
        return Row(candidate.rung, SERVED, "", "skipped", "it served no call of this part")
    return Row(candidate.rung, SERVED, "", "failed", f"it served no call; {_servants(candidate.served_by)} did")


def _servants(rungs: Iterable[str]) -> str:
    names = ("your function" if rung == COMPOSED else f"the rung {rung}" for rung in sorted(set(rungs)))
    return " or ".join(names) or "no rung"
