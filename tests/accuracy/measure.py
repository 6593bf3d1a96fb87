"""Run one operator of several functions, eager, and the functions in float64."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from opwright.api.operator import Operator
from opwright.settings import Settings
from tests.accuracy.comparison import Comparison, Figures, pooled
from tests.accuracy.draws import GRADIENTS, Shape, draw_arguments
from tests.accuracy.subject import Subject

Functions = Callable[[list[Tensor]], list[Tensor]]
THOROUGHLY, QUICKLY = (
    (0, 8, 64),
    (0, 3, 8, 24, 64),
)  # how many samples to take, one count after the other, while a figure is outside of the promise
_AT_A_TIME = 13  # functions in one operator: a build for each would take four times as long


@dataclass(frozen=True, slots=True)
class Together:
    """Several subjects as one function, so that one build serves all of them."""

    subjects: tuple[Subject, ...]

    def __call__(self, arguments: list[Tensor]) -> list[Tensor]:
        """Apply each subject to arguments of its own."""
        given = iter(arguments)
        return [subject(*itertools.islice(given, len(subject.kinds))) for subject in self.subjects]

    @property
    def kinds(self) -> str:
        """The kinds of all arguments."""
        return "".join(subject.kinds for subject in self.subjects)


def operator_of(subjects: Sequence[Subject], settings: Settings) -> Operator:
    """Make one operator of several functions."""
    together = Together(tuple(subjects))

    def reference(arguments: list[Tensor]) -> list[Tensor]:
        return together(arguments)

    return Operator(reference, name="measured", settings=settings)


def chunks(subjects: Mapping[str, Subject], dtype: torch.dtype) -> Iterator[dict[str, Subject]]:
    """The subjects of a dtype, in groups of as many as one operator takes."""
    name = str(dtype).removeprefix("torch.")
    wanted = [(key, subject) for key, subject in subjects.items() if name in subject.dtypes]
    for begin in range(0, len(wanted), _AT_A_TIME):
        yield dict(wanted[begin : begin + _AT_A_TIME])


def measure(
    functions: Functions,
    subjects: Mapping[str, Subject],
    dtype: torch.dtype,
    range_name: str,
    shape: Shape = (64, 128),
    seed: int = 0,
) -> Iterator[tuple[str, Comparison]]:
    """Compare values, and gradients of every argument, of the subjects that are measured in a range.

    Args:
        functions: The candidate, such as an operator of the subjects.
        subjects: The functions and the kinds of their arguments, by name.
        dtype: The dtype of the arguments.
        range_name: The range of the arguments.
        shape: The shape of the arguments.
        seed: The seed of the arguments.
    """
    together = Together(tuple(subjects.values()))
    drawn = [
        argument for subject in together.subjects for argument in draw_arguments(subject.kinds, range_name, shape, seed)
    ]
    rounded = [argument.to(dtype) if argument.is_floating_point() else argument for argument in drawn]
    wide = [argument.double() if argument.is_floating_point() else argument for argument in rounded]
    runs = ((functions, rounded), (together, rounded), (together, wide))
    ours, eager, exact = (_results(call, given, together.kinds, dtype) for call, given in runs)
    for name, what, triple in zip(*_labels(subjects), zip(ours, eager, exact, strict=True), strict=True):
        if range_name in subjects[name].ranges:
            yield name, Comparison(what, *triple)


def measure_samples(
    functions: Functions,
    subjects: Mapping[str, Subject],
    dtype: torch.dtype,
    range_name: str,
    shape: Shape = (64, 128),
    samples: Sequence[int] = THOROUGHLY,
) -> Iterator[tuple[str, str, Figures]]:
    """Combine several samples: name, what is compared, figures. Take more samples where a few are outside.

    An error that a whole row shares, such as that of its sum, is drawn once for each row; and in some ranges one number
    dominates a result. One sample then compares only a few roundings.
    """
    found: dict[tuple[str, str], list[Figures]] = {}
    for seeds in itertools.starmap(range, itertools.pairwise(samples)):
        for seed in seeds:
            for name, comparison in measure(functions, subjects, dtype, range_name, shape, seed):
                found.setdefault((name, comparison.what), []).append(comparison.figures())
        figures = {key: pooled(samples) for key, samples in found.items()}
        if all(together.are_kept() for together in figures.values()):
            break
    yield from ((name, what, together) for (name, what), together in figures.items())


def _labels(subjects: Mapping[str, Subject]) -> tuple[list[str], list[str]]:
    """The subject and the kind of each result: all values, then all gradients."""
    gradients = [
        (name, f"gradient {index}")
        for name, subject in subjects.items()
        for index, kind in enumerate(subject.kinds)
        if kind in GRADIENTS
    ]
    labels = [*((name, "value") for name in subjects), *gradients]
    return [name for name, _ in labels], [what for _, what in labels]


def _results(functions: Functions, inputs: Sequence[Tensor], kinds: str, dtype: torch.dtype) -> list[Tensor]:
    """The values, and the gradients of the arguments that have one."""
    leaves = [
        argument.detach().requires_grad_() if kind in GRADIENTS else argument
        for kind, argument in zip(kinds, inputs, strict=True)
    ]
    values = functions(leaves)
    cotangents = []
    for index, value in enumerate(values):
        generator = torch.Generator().manual_seed(1000 + index)
        drawn = torch.randn(value.shape, generator=generator, dtype=torch.float64)
        cotangents.append(drawn.to(dtype).to(value.dtype))
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    return [*(value.detach() for value in values), *torch.autograd.grad(values, wanted, cotangents)]
