"""The cases of an audit: the subject and its reference, each with the smallest sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any

import torch
from torch._ops import OpOverload

from opwright.auditing.case import Case
from opwright.auditing.names import registered
from opwright.auditing.options import Options
from opwright.checking.calls import fresh
from opwright.checking.finding import one_line
from opwright.checking.subject import Subject, is_operator
from opwright.errors import OpwrightError, SamplesMissing
from opwright.samples import Sample, SampleFactory, Shapes

_PRIMES = (2, 3, 5, 7, 11, 13)
_MULTIPLES = (2, 3, 5)
_MOST_SIZES = 3


def cases_of(subject: Subject, options: Options) -> tuple[Case, Case]:
    """Pair the subject and the reference with the smallest sample.

    Raises:
        SamplesMissing: There is none, or the reference does not take it.
    """
    sample = subject.tiny_samples(options.device, options.dtype)[0]
    try:
        changed = _changed(subject.reference, sample)
    except Exception as error:
        fact = f"the reference of {subject.name} does not take its sample: {one_line(error)}"
        raise SamplesMissing(fact, hint="correct samples=") from error
    sizes = (sample, *_sizes(subject, options, sample))
    overload = _overload(subject)
    mine = Case(_callable(subject, overload), sample, options, sizes, changed, overload, subject.reference)
    return mine, replace(mine, function=subject.reference, overload=None)


def _overload(subject: Subject) -> OpOverload | None:
    try:
        return subject.overload
    except OpwrightError:
        return None


def _callable(subject: Subject, overload: OpOverload | None) -> Callable[..., Any]:
    if overload is None or is_operator(subject.judged):
        return subject.function
    return registered(overload, getattr(subject.reference, "__module__", None))


def _sizes(subject: Subject, options: Options, tiny: Sample) -> list[Sample]:
    """The call in other sizes that the reference accepts, with the same ranks and dtypes."""
    made = subject.make_samples(options.device, options.dtype, _resized(subject.samples))
    return [other for other in islice(made, _MOST_SIZES) if _alike(other, tiny) and _takes(subject.reference, other)]


def _takes(reference: Callable[..., Any], sample: Sample) -> bool:
    try:
        call = fresh(sample)
        reference(*call.args, **call.kwargs)
    except Exception:
        return False
    return True


def _resized(samples: SampleFactory) -> SampleFactory:
    """Samples of several sizes, as different from each other as possible."""
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


def _alike(other: Sample, tiny: Sample) -> bool:
    """Whether two calls differ, and only in their sizes."""
    shapes, tiny_shapes = ([tensor.shape for tensor in sample.tensors()] for sample in (other, tiny))
    return shapes != tiny_shapes and list(map(len, shapes)) == list(map(len, tiny_shapes))
