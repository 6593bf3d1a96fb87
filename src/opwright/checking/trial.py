"""Trial: one candidate, the reference that defines what is right, and the samples to try them on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch

from opwright.checking.subject import Candidate, Subject
from opwright.samples import Sample, SampleFactory


@dataclass(frozen=True, slots=True)
class Material:
    """The samples of a subject, made once for all its candidates; their names carry the dtype.

    Attributes:
        given: What the user asked for, or the smallest of it, in every dtype.
        tiny: The smallest sample there is, in every dtype.
        tiny_double: The same in float64, for numerical derivatives.
        edges: Samples with sizes 1 and 0, in the first dtype; empty where the factory cannot make them.
    """

    given: tuple[Sample, ...]
    tiny: tuple[Sample, ...]
    tiny_double: Sample
    edges: tuple[Sample, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """What a judge is given, beside the sample.

    Attributes:
        candidate: What is judged.
        reference: What is right.
        material: All samples.
        overload: The operator as `torch.ops` has it; None for what is not an operator.
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
    smallest = _smallest(subject)
    factory = smallest if quick else subject.make_samples
    given = tuple(sample for dtype in dtypes for sample in _named(factory(device, dtype), dtype))
    small = getattr(subject.samples, "small", None) or smallest
    return Material(
        given=given,
        tiny=tuple(_named(small(device, dtype), dtype)[0] for dtype in dtypes),
        tiny_double=_named(small(device, torch.float64), torch.float64)[0],
        edges=_named(small(device, dtypes[0]), dtypes[0])[1:],
    )


def _named(samples: Iterable[Sample], dtype: torch.dtype) -> tuple[Sample, ...]:
    kind = str(dtype).removeprefix("torch.")
    return tuple(replace(sample, name=f"{sample.name} {kind}".strip()) for sample in samples)


def _smallest(subject: Subject) -> SampleFactory:
    def smallest(device: str, dtype: torch.dtype) -> list[Sample]:
        return [min(subject.make_samples(device, dtype), key=_element_count)]

    return smallest


def _element_count(sample: Sample) -> int:
    return sum(tensor.numel() for tensor in sample.tensors())
