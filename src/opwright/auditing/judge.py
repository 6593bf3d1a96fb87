"""Judge: one row of an audit: runs an experiment with the subject and the reference, and compares."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch

from opwright.auditing.case import Case
from opwright.auditing.scorecard import Row
from opwright.auditing.witness import Seen, demand_same
from opwright.checking.calls import exact
from opwright.checking.finding import Fault, Skipped, one_line

Experiment = Callable[[Case], Seen]
"""Runs an experiment with the function of a case and returns its observations.

Raises:
    Skipped: Nothing can be said here; the message says why.
    Fault: The observations are wrong whatever the reference does.
"""


@dataclass(frozen=True, slots=True)
class Judge:
    """One row.

    Attributes:
        name: The name of the row.
        experiment: Runs with the subject, and with the reference.
        expected: A cheaper experiment for the reference with the same observations; None for the experiment itself.
        differentiates: Whether it needs derivatives.
        slow: Whether it takes many seconds.
    """

    name: str
    experiment: Experiment
    expected: Experiment | None = None
    differentiates: bool = True
    slow: bool = False

    def row(self, family: str, subject: Case, reference: Case) -> Row:
        """Run the experiment with both and compare."""
        with _undisturbed():
            try:
                if self.slow and subject.options.quick:
                    raise Skipped("left out of a quick audit", hint="audit without quick")
                return self._compared(family, subject, reference)
            except Skipped as reason:
                return Row(family, self.name, "skipped", str(reason))
            except Exception as error:
                return Row(family, self.name, "torch itself raises", _said(error))

    def _compared(self, family: str, subject: Case, reference: Case) -> Row:
        """Compare; what the experiment raises with the reference is passed on."""
        if self.differentiates:
            reference.demand_gradients()
        expected = _seen(self.expected or self.experiment, reference)
        try:
            got = _seen(self.experiment, subject)
        except Skipped as reason:
            if self.expected is None or self.differentiates:  # the experiment was run with the reference
                return Row(family, self.name, "raises", str(reason))
            raise
        except Exception as error:
            self._demand_of_torch(reference, expected)
            return Row(family, self.name, "silently wrong" if isinstance(error, Fault) else "raises", _said(error))
        try:
            self._demand_same(got, expected, subject, reference)
        except Fault as fault:
            return Row(family, self.name, "silently wrong", fault.finding.detail)
        return Row(family, self.name, "pass")

    def _demand_same(self, got: Seen, expected: Seen, subject: Case, reference: Case) -> None:
        inputs = subject.tensors
        try:
            demand_same(got, expected, None, inputs)
        except Fault:
            by_reference = self._demand_of_torch(reference, expected)
            truth = self._truth(reference)
            try:
                demand_same(got, by_reference, truth, inputs)
            except Fault:
                _demand_steadiness(by_reference, expected, truth, inputs)
                raise

    def _truth(self, reference: Case) -> Seen | None:
        """Run it in float64, or with inputs moved by one rounding; None where the reference does not take them."""
        try:
            return _seen(self.experiment, replace(reference, sample=exact(reference.sample)))
        except Exception:
            return None

    def _demand_of_torch(self, reference: Case, expected: Seen) -> Seen:
        """Run the experiment itself with the reference where a cheaper one was used: torch may fail at it too."""
        if self.expected is None:
            return expected
        try:
            return _seen(self.experiment, reference)
        except Skipped:
            return expected


def _demand_steadiness(by_reference: Seen, expected: Seen, truth: Seen | None, inputs: list[torch.Tensor]) -> None:
    """Demand that the reference gives the expected result; one that draws random numbers may not."""
    try:
        demand_same(by_reference, expected, truth, inputs)
    except Fault as fault:
        raise Skipped(f"the reference itself gives something else: {fault.finding.detail}") from fault


def _seen(experiment: Experiment, case: Case) -> Seen:
    torch.manual_seed(0)
    return experiment(case)


def _said(error: BaseException) -> str:
    return error.finding.detail if isinstance(error, Fault) else one_line(error)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Restore the state of random numbers, and silence torch's messages about performance."""
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch._C._functorch._set_vmap_fallback_warning_enabled(False)  # type: ignore[attr-defined]  # C++ writes to stderr
        yield
