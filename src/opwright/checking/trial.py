"""Trial: one candidate, the reference that defines what is right, and the samples to try them on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch

from opwright.checking.subject import Candidate, Subject
from opwright.samples import Sample


@dataclass(frozen=True, slots=True)
class Material:
    """The samples of a subject, made once for all its candidates; their names include the dtype.

    Attributes:
        given: The user's samples, or the smallest of them, in every dtype.
        tiny: The smallest sample, in every dtype.
        tiny_double: The same in float64, for numerical derivatives.
        edges: Samples with sizes 1 and 0, in the first dtype; empty where the factory cannot make them.
    """

    given: tuple[Sample, ...]
    tiny: tuple[Sample, ...]
    tiny_double: Sample
    edges: tuple[Sample, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """What a check gets besides the sample.

    Attributes:
        candidate: The candidate under test.
        reference: Defines the right results.
        material: All samples.
        overload: The operator of `torch.ops`; None if there is none.
    """

    candidate: Candidate
    reference: Callable[..., Any]
    material: Material
    overload: Any


def material_of(subject: Subject, dtypes: tuple[torch.dtype, ...], device: str, *, quick: bool = False) -> Material:
    """Make the samples: those of the factory, or the smallest of them, and, where it has a method `small`, tiny ones.

    Raises:
        SamplesMissing: The factory raises, or makes none.
    """
    factory = subject.smallest_samples if quick else subject.make_samples
    given = tuple(sample for dtype in dtypes for sample in _named(factory(device, dtype), dtype))
    small = {each: _named(subject.tiny_samples(device, each), each) for each in (*dtypes, torch.float64)}
    return Material(
        given=given,
        tiny=tuple(small[dtype][0] for dtype in dtypes),
        tiny_double=small[torch.float64][0],
        edges=small[dtypes[0]][1:],
    )


def _named(samples: Iterable[Sample], dtype: torch.dtype) -> tuple[Sample, ...]:
    kind = str(dtype).removeprefix("torch.")
    return tuple(replace(sample, name=f"{sample.name} {kind}".strip()) for sample in samples)
