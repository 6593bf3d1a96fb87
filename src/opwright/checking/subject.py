"""Subject: what is checked, audited or measured: an operator with its rungs, or any callable with a reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeGuard

import torch
from torch._ops import OpOverload, OpOverloadPacket

from opwright.checking.calls import fresh
from opwright.errors import ReferenceMissing, SamplesMissing
from opwright.samples import Sample, SampleFactory, no_call, tensors_in, told
from opwright.tracing.interface.place import place_of

if TYPE_CHECKING:
    from opwright.binding.rungs import Rung
    from opwright.operators.base import BaseOperator

COMPOSED = "composed"
WHOLE_OPERATOR = "operator"
PLAIN_CALLABLE = "callable"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to compute the operator.

    Attributes:
        rung: The rung it is pinned to; "operator" for the operator as a whole, "callable" for any other callable.
        function: What to call.
        last_rung: Returns the rung that served the last call; None if that is unknown.
        served_by: The rungs that have served calls, except calls with an empty tensor.
    """

    rung: str
    function: Callable[..., Any]
    last_rung: Callable[[], str | None] = lambda: None
    served_by: list[str] = field(default_factory=list)

    @property
    def pinned(self) -> bool:
        """Whether one particular rung must serve the calls."""
        return self.rung not in (WHOLE_OPERATOR, PLAIN_CALLABLE)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function and record which rung served."""
        result = self.function(*args, **kwargs)
        servant = self.last_rung()
        if servant is not None and not _has_empty_tensor(args, kwargs):
            self.served_by.append(servant)
        return result


@dataclass(frozen=True, slots=True)
class Subject:
    """An operator or callable to test, and its reference.

    Attributes:
        judged: The subject as the user gave it.
        name: Its name in reports.
        function: The function to call.
        reference: The function of torch's operations that defines the right results.
        samples: Makes the test calls.
    """

    judged: Any
    name: str
    function: Callable[..., Any]
    reference: Callable[..., Any]
    samples: SampleFactory

    @property
    def overload(self) -> OpOverload | None:
        """The operator of `torch.ops`; None if there is none."""
        return _overload(self.judged)

    def make_samples(self, device: str, dtype: torch.dtype, factory: SampleFactory | None = None) -> list[Sample]:
        """Make the samples, or those of another factory.

        Raises:
            SamplesMissing: The factory raises, or makes none, or one that the reference does not take.
        """
        made = list(told(factory or self.samples, self.name)(device, dtype))
        if not made:
            raise SamplesMissing(f"the samples of {self.name} are empty", hint="make at least one opwright.Sample")
        if factory is None:
            self._try(made)
        return made

    def _try(self, samples: Iterable[Sample]) -> None:
        """Run the reference once on each sample: a check or a race of what it does not take would tell nothing."""
        for sample in samples:
            copy = fresh(sample)
            try:
                with torch.random.fork_rng(devices=[]):
                    self.reference(*copy.args, **copy.kwargs)
            except Exception as error:
                raise no_call(sample, self.name, error, place_of(self.reference)) from error

    def tiny_samples(self, device: str, dtype: torch.dtype) -> list[Sample]:
        """Make the smallest sample and, where the factory can, those with sizes 1 and 0.

        Raises:
            SamplesMissing: As `make_samples`.
        """
        if small := getattr(self.samples, "small", None):
            return self.make_samples(device, dtype, small)
        return self.smallest_samples(device, dtype)

    def smallest_samples(self, device: str, dtype: torch.dtype) -> list[Sample]:
        """Make the samples, and keep the smallest.

        Raises:
            SamplesMissing: As `make_samples`.
        """
        samples = self.make_samples(device, dtype)
        return [min(samples, key=lambda sample: sum(tensor.numel() for tensor in sample.tensors()))]

    def candidates(self, device: str) -> tuple[tuple[Candidate, ...], Mapping[str, str]]:
        """The ways to compute it for tensors on a device, and why others are missing.

        The rung "composed" is the reference itself, so it is not a candidate.
        """
        operator = self.judged
        if not is_operator(operator):
            return (Candidate(PLAIN_CALLABLE, self.function),), {}

        def last_rung() -> str | None:
            return operator.last_rung

        kind = torch.device(device).type
        rungs = [rung for rung in operator.rungs() if rung.name != COMPOSED]
        missing: dict[str, str] = {rung.name: reason for rung in rungs if (reason := _why_missing(rung, kind))}
        pinned = [Candidate(rung.name, operator.on(rung.name), last_rung) for rung in rungs if rung.name not in missing]
        return (*pinned, Candidate(WHOLE_OPERATOR, operator, last_rung)), missing


def is_operator(value: object) -> TypeGuard[BaseOperator]:
    """Whether a value is an operator of ours, judged by its members."""
    kind = type(value)
    return (
        callable(getattr(kind, "on", None)) and callable(getattr(kind, "rungs", None)) and hasattr(value, "reference")
    )


def subject_of(
    judged: BaseOperator | Callable[..., Any],
    reference: Callable[..., Any] | None,
    samples: SampleFactory | None,
    otherwise: str,
) -> Subject:
    """Collect everything that a test of a subject needs.

    Args:
        judged: An operator, an operator of `torch.ops`, a subclass of `torch.autograd.Function`, or any callable.
        reference: What defines the right result; an operator of ours has its own.
        samples: The test calls; an operator of ours may have its own.
        otherwise: The consequence of missing samples for messages, such as "it cannot be checked".

    Raises:
        SamplesMissing: There are no samples.
        ReferenceMissing: There is no reference.
    """
    name = _name(judged)
    if is_operator(judged):
        reference, samples = reference or judged.reference, samples or judged.samples
    if reference is None:
        raise ReferenceMissing(
            f"{name} is not an operator of opwright, and no reference is given to compare it with",
            hint="pass reference=function",
        )
    if samples is None:
        given = "give the decorator" if is_operator(judged) else "pass"
        hint = f'{given} samples=opwright.shapes("B S", B=(16, 64), S=128), for example'
        raise SamplesMissing(f"{name} has no samples, so {otherwise}", hint=hint)
    function = judged.apply if isinstance(judged, type) and issubclass(judged, torch.autograd.Function) else judged
    return Subject(judged, name, function, reference, samples)


def _name(judged: Any) -> str:
    if is_operator(judged):
        return judged.name
    found = _overload(judged)
    return found._schema.name if found else getattr(judged, "__name__", type(judged).__name__)


def _overload(judged: Any) -> OpOverload | None:
    """The operator of `torch.ops`, which `torch.library.custom_op` keeps in a private attribute."""
    if is_operator(judged):
        return judged.overload
    if isinstance(judged, OpOverloadPacket):
        return getattr(judged, judged.overloads()[0])  # type: ignore[no-any-return]
    return judged if isinstance(judged, OpOverload) else getattr(judged, "_opoverload", None)


def _why_missing(rung: Rung, device: str) -> str:
    if not rung.available:
        return rung.reason
    if rung.devices and device not in rung.devices:
        return f"it serves tensors on {' and '.join(rung.devices)}, but the samples are on {device}"
    return ""


def _has_empty_tensor(*values: object) -> bool:
    return any(tensor.numel() == 0 for value in values for tensor in tensors_in(value))
