"""Subject: what is judged or measured: an operator with its rungs, or any callable beside a reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeGuard

import torch

from opwright.checking.finding import one_line
from opwright.errors import OpwrightError, ReferenceMissing, SamplesMissing
from opwright.samples import Sample, SampleFactory, tensors_in

COMPOSED = "composed"
WHOLE_OPERATOR = "operator"
PLAIN_CALLABLE = "callable"


class RungLike(Protocol):
    """What is asked of a rung."""

    @property
    def name(self) -> str:
        """One of "composed", "function", "cpp", "cuda"."""

    @property
    def available(self) -> bool:
        """Whether it can serve calls here."""

    @property
    def reason(self) -> str:
        """Why it is not available; empty if it is."""

    @property
    def devices(self) -> tuple[str, ...]:
        """The kinds of devices whose tensors it serves; empty if it serves any."""


class OperatorLike(Protocol):
    """What is asked of an operator."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def reference(self) -> Callable[..., Any]:
        """The function as it was written."""

    @property
    def samples(self) -> SampleFactory | None:
        """Makes the calls to judge it by."""

    @property
    def last_rung(self) -> str | None:
        """The rung that served the last call."""

    @property
    def overload(self) -> Any:
        """The operator as `torch.ops` has it."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the fastest rung there is."""

    def on(self, rung: str) -> Callable[..., Any]:
        """Return a callable that is pinned to one rung."""

    def rungs(self) -> Sequence[RungLike]:
        """List the rungs."""

    def source(self, rung: str) -> str:
        """Return the source of a rung as text."""

    def explain(self) -> str:
        """Say what was made of the reference."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to compute the operator.

    Attributes:
        rung: The rung it is pinned to; "operator" for the operator as a whole, "callable" for what is not one.
        function: What to call.
        last_rung: Tells which rung served the last call; None where nothing can be told.
        served_by: Filled by the calls: the rungs that served them, except those where a tensor is empty.
    """

    rung: str
    function: Callable[..., Any]
    last_rung: Callable[[], str | None] = lambda: None
    served_by: list[str] = field(default_factory=list)

    @property
    def pinned(self) -> bool:
        """Whether a certain rung has to serve the calls."""
        return self.rung not in (WHOLE_OPERATOR, PLAIN_CALLABLE)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function and note which rung served."""
        result = self.function(*args, **kwargs)
        servant = self.last_rung()
        if servant is not None and not _has_empty_tensor(args, kwargs):
            self.served_by.append(servant)
        return result


@dataclass(frozen=True, slots=True)
class Subject:
    """A name, the reference that defines what is right, samples, and the candidates to judge."""

    name: str
    reference: Callable[..., Any]
    samples: SampleFactory
    candidates: tuple[Candidate, ...]
    missing: Mapping[str, str] = field(default_factory=dict)
    overload: Any = None

    def make_samples(self, device: str, dtype: torch.dtype) -> list[Sample]:
        """Make the samples.

        Raises:
            SamplesMissing: The factory raises, or makes none.
        """
        return made_samples(self.name, self.samples, device, dtype)


def made_samples(name: str, factory: SampleFactory, device: str, dtype: torch.dtype) -> list[Sample]:
    """Call a factory of samples.

    Raises:
        SamplesMissing: It raises, or makes none.
    """
    try:
        made = list(factory(device, dtype))
    except OpwrightError:
        raise
    except Exception as error:
        raise SamplesMissing(f"the samples of {name} cannot be made: {one_line(error)}") from error
    if not made:
        raise SamplesMissing(f"the samples of {name} are empty", hint="make at least one opwright.Sample")
    return made


def is_operator(value: object) -> TypeGuard[OperatorLike]:
    """Tell whether a value is an operator of ours, by its members."""
    kind = type(value)
    return (
        callable(getattr(kind, "on", None)) and callable(getattr(kind, "rungs", None)) and hasattr(value, "reference")
    )


def subject_of(
    judged: OperatorLike | Callable[..., Any],
    reference: Callable[..., Any] | None = None,
    samples: SampleFactory | None = None,
    device: str = "cpu",
) -> Subject:
    """Collect what is to be judged. The rung "composed" is the reference itself and no candidate.

    Args:
        judged: An operator, or any callable.
        reference: What defines the right result; an operator has its own.
        samples: The calls to judge by; an operator may have its own.
        device: Where the samples are; rungs that serve no tensors there are missing.

    Raises:
        SamplesMissing: There are no samples.
        ReferenceMissing: There is no reference.
    """
    if is_operator(judged):
        kind = torch.device(device).type
        return _operator_subject(judged, reference or judged.reference, samples or judged.samples, kind)
    name = getattr(judged, "__name__", type(judged).__name__)
    if reference is None:
        raise ReferenceMissing(
            f"{name} is not an operator, and no reference is given to judge it by", hint="pass reference=function"
        )
    return Subject(name, reference, _present(samples, name), (Candidate(PLAIN_CALLABLE, judged),))


def _operator_subject(
    operator: OperatorLike, reference: Callable[..., Any], samples: SampleFactory | None, device: str
) -> Subject:
    def last_rung() -> str | None:
        return operator.last_rung

    rungs = [rung for rung in operator.rungs() if rung.name != COMPOSED]
    missing = {rung.name: reason for rung in rungs if (reason := _why_missing(rung, device))}
    pinned = [Candidate(rung.name, operator.on(rung.name), last_rung) for rung in rungs if rung.name not in missing]
    return Subject(
        name=operator.name,
        reference=reference,
        samples=_present(samples, operator.name),
        candidates=(*pinned, Candidate(WHOLE_OPERATOR, operator, last_rung)),
        missing=missing,
        overload=operator.overload,
    )


def _why_missing(rung: RungLike, device: str) -> str:
    if not rung.available:
        return rung.reason
    if rung.devices and device not in rung.devices:
        return f"it serves tensors on {' and '.join(rung.devices)}, and the samples are on {device}"
    return ""


def _present(samples: SampleFactory | None, name: str) -> SampleFactory:
    if samples is None:
        raise SamplesMissing(
            f"{name} has no samples, so it cannot be checked or measured",
            hint='give the decorator samples=opwright.shapes("B S", B=(16, 64), S=128), for example',
        )
    return samples


def _has_empty_tensor(*values: object) -> bool:
    return any(tensor.numel() == 0 for value in values for tensor in tensors_in(value))
