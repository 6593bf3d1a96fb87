"""Subject: what is audited, beside the reference that says what is right, and the calls to audit it by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import torch
from torch._ops import OpOverload, OpOverloadPacket

from opwright.auditing.case import Case
from opwright.auditing.names import registered
from opwright.auditing.options import Options
from opwright.checking.calls import fresh
from opwright.checking.finding import one_line
from opwright.checking.subject import OperatorLike, is_operator, made_samples
from opwright.errors import OpwrightError, ReferenceMissing, SamplesMissing
from opwright.samples import Sample, SampleFactory, Shapes

_PRIMES = (2, 3, 5, 7, 11, 13)
_MULTIPLES = (2, 3, 5)
_MOST_SIZES = 3


@dataclass(frozen=True, slots=True)
class Audited:
    """A subject.

    Attributes:
        name: What reports call it.
        function: What is called.
        reference: What it stands for, composed of torch's operations.
        samples: Makes the calls.
        overload: The operator as `torch.ops` has it; None for what is not one.
    """

    name: str
    function: Callable[..., Any]
    reference: Callable[..., Any]
    samples: SampleFactory
    overload: OpOverload | None = None

    def cases(self, options: Options) -> tuple[Case, Case]:
        """Pair the subject and the reference with the smallest sample there is.

        Raises:
            SamplesMissing: There is none, or the reference does not take it.
        """
        sample = self._smallest(options)
        try:
            changed = _changed(self.reference, sample)
        except Exception as error:
            raise SamplesMissing(f"the reference of {self.name} does not take its sample: {one_line(error)}") from error
        sizes = (sample, *self._sizes(options, sample))
        mine = Case(self.function, sample, options, sizes, changed, self.overload, self.reference)
        return mine, replace(mine, function=self.reference, overload=None)

    def _smallest(self, options: Options) -> Sample:
        made = self._made(getattr(self.samples, "small", self.samples), options)
        return made[0] if hasattr(self.samples, "small") else min(made, key=_element_count)

    def _sizes(self, options: Options, tiny: Sample) -> list[Sample]:
        """The call in other sizes, with ranks and dtypes as they are, as far as the reference takes them."""
        made = list(islice(self._made(_resized(self.samples), options), _MOST_SIZES))
        return [other for other in made if _alike(other, tiny) and self._takes(other)]

    def _takes(self, sample: Sample) -> bool:
        try:
            call = fresh(sample)
            self.reference(*call.args, **call.kwargs)
        except Exception:
            return False
        return True

    def _made(self, factory: SampleFactory, options: Options) -> list[Sample]:
        return made_samples(self.name, factory, options.device, options.dtype)


def audited(
    judged: OperatorLike | Callable[..., Any],
    reference: Callable[..., Any] | None = None,
    samples: SampleFactory | None = None,
) -> Audited:
    """Collect what is to be audited.

    Args:
        judged: An operator, an operator of `torch.ops`, a subclass of `torch.autograd.Function`, or any callable.
        reference: What defines the right result; an operator of ours has its own.
        samples: The calls to judge by; an operator of ours may have its own.

    Raises:
        ReferenceMissing: There is no reference.
        SamplesMissing: There are no samples.
    """
    name = _name(judged)
    if is_operator(judged):
        reference, samples = reference or judged.reference, samples or judged.samples
    if reference is None:
        raise ReferenceMissing(
            f"{name} is not an operator of opwright, and no reference is given to judge it by",
            hint="pass reference=function",
        )
    if samples is None:
        raise SamplesMissing(
            f"{name} has no samples, so it cannot be audited", hint='pass samples=opwright.shapes("B S", B=4, S=8)'
        )
    overload = _overload(judged)
    return Audited(name, _callable(judged, overload, reference), reference, samples, overload)


def _name(judged: Any) -> str:
    if is_operator(judged):
        return judged.name
    found = _overload(judged)
    return found._schema.name if found else getattr(judged, "__name__", type(judged).__name__)


def _callable(judged: Any, overload: OpOverload | None, reference: Callable[..., Any]) -> Callable[..., Any]:
    if isinstance(judged, type) and issubclass(judged, torch.autograd.Function):
        return judged.apply
    if overload is None or is_operator(judged):
        return judged  # type: ignore[no-any-return]
    return registered(overload, getattr(reference, "__module__", None))


def _overload(judged: Any) -> OpOverload | None:
    """The operator as `torch.ops` has it; `torch.library.custom_op` keeps it in a private attribute."""
    if is_operator(judged):
        try:
            return judged.overload  # type: ignore[no-any-return]
        except OpwrightError:
            return None
    if isinstance(judged, OpOverloadPacket):
        return getattr(judged, judged.overloads()[0])  # type: ignore[no-any-return]
    return judged if isinstance(judged, OpOverload) else getattr(judged, "_opoverload", None)


def _resized(samples: SampleFactory) -> SampleFactory:
    """Samples of several sizes that have nothing in common, where there is a choice."""
    if not isinstance(samples, Shapes):
        return samples
    letters = list(samples.sizes[0])
    multiples = [{letter: n * prime for letter, prime in zip(letters, _PRIMES, strict=False)} for n in _MULTIPLES]
    return replace(samples, sizes=tuple(multiples)) if len(letters) <= len(_PRIMES) and letters else samples


def _changed(reference: Callable[..., Any], sample: Sample) -> frozenset[int]:
    """Positions of the tensors that the function changes."""
    call = fresh(sample)
    with torch.no_grad():
        reference(*call.args, **call.kwargs)
    pairs = enumerate(zip(sample.tensors(), call.tensors(), strict=True))
    return frozenset(i for i, (before, after) in pairs if not torch.equal(before.nan_to_num(), after.nan_to_num()))


def _element_count(sample: Sample) -> int:
    return sum(tensor.numel() for tensor in sample.tensors())


def _alike(other: Sample, tiny: Sample) -> bool:
    """Whether two calls differ in their sizes only, and do differ."""
    shapes, tiny_shapes = ([tensor.shape for tensor in sample.tensors()] for sample in (other, tiny))
    return shapes != tiny_shapes and list(map(len, shapes)) == list(map(len, tiny_shapes))
