"""Samples: the arguments on which an operator is checked, measured and built ahead of time.

A sample is one call. A callable `(device, dtype) -> iterable of Sample` makes them; `shapes` writes such a callable in
short.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle
from math import prod
from typing import Any, Protocol, overload

import torch

from opwright.errors import OpwrightError, Place, SamplesMissing, ShapesUnreadable

Progress = Callable[[str, int, int], None]
"""`(what is under way, steps done, steps in all)`, called before each step."""

DEFAULT_DTYPES = (torch.float32, torch.float64)
"""What is checked and shipped where nobody names dtypes."""

_FACTOR = re.compile(r"\d+|[A-Za-z_]\w*")
_FORM = (
    'samples= is opwright.shapes("B H"), or a function of a device and a dtype that returns opwright.Sample((x, y)), …'
)
_TINY_SIZES = (2, 3, 5, 7, 11, 13)
_DEFAULT_STEP = 16


@dataclass(frozen=True, slots=True)
class Sample:
    """The arguments of one call.

    Attributes:
        args: Positional arguments: tensors, numbers, lists of tensors.
        kwargs: Keyword arguments.
        name: What reports call it, such as "B=16 S=128".
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""

    def tensors(self) -> list[torch.Tensor]:
        """List the tensors among the arguments, also those inside lists, tuples and dicts, in order."""
        return [*tensors_in(self.args), *tensors_in(self.kwargs)]

    def map(self, function: Callable[[torch.Tensor], torch.Tensor]) -> Sample:
        """Return this sample with `function` applied to each of its tensors; one that occurs twice is mapped once."""
        mapped: dict[int, torch.Tensor] = {}

        def once(tensor: torch.Tensor) -> torch.Tensor:
            if id(tensor) not in mapped:
                mapped[id(tensor)] = function(tensor)
            return mapped[id(tensor)]

        return self.with_tensors([once(tensor) for tensor in self.tensors()])

    def with_tensors(self, tensors: Iterable[torch.Tensor]) -> Sample:
        """Return this sample with its tensors replaced, in the order of `tensors()`."""
        remaining = iter(tensors)
        args = _map_tensors(lambda _: next(remaining), self.args)
        kwargs = _map_tensors(lambda _: next(remaining), self.kwargs)
        return replace(self, args=args, kwargs=kwargs)


class SampleFactory(Protocol):
    """Makes samples for a device and a dtype; the same ones each time."""

    def __call__(self, device: str, dtype: torch.dtype, /) -> Iterable[Sample]:
        """Return the samples."""


def first_sample(
    operator: str,
    samples: SampleFactory | None,
    place: Place,
    bind: Callable[[tuple[Any, ...], dict[str, Any]], tuple[Any, ...]],
) -> Sample:
    """The first sample of an operator, in float32 on the CPU, with its arguments in order.

    Args:
        operator: What it is called.
        samples: What it has.
        place: Where its reference is defined.
        bind: Gives its arguments, in order, of those of a call.

    Raises:
        SamplesMissing: If there is none, or it is not a call of the operator.
    """
    for sample in required(samples, operator, "nothing is known of its arguments before a call", place)(
        "cpu", torch.float32
    ):
        try:
            return Sample(bind(tuple(sample.args), dict(sample.kwargs)), {}, sample.name)
        except TypeError as error:
            raise no_call(sample, operator, error, place) from None
    raise SamplesMissing(f"the samples of {operator} are empty", place=place, hint="make at least one opwright.Sample")


def no_call(sample: Sample, operator: str, error: Exception, place: Place | None) -> SamplesMissing:
    """What to say of a sample that is not a call which an operator takes."""
    message = str(error).strip().partition("\n")[0]
    return SamplesMissing(
        f'the sample "{sample.name}" is not a call that {operator} takes: {type(error).__name__}: {message}',
        place=place,
        hint="let samples= make calls that your function takes, with an argument for each parameter without a default",
    )


def required(samples: SampleFactory | None, operator: str, otherwise: str, place: Place) -> SampleFactory:
    """The samples of an operator, which something cannot do without.

    Args:
        samples: What it has.
        operator: What it is called.
        otherwise: What follows where it has none: "nothing is known of its arguments".
        place: Where its reference is defined.

    Raises:
        SamplesMissing: If it has none.
    """
    if samples is None:
        raise SamplesMissing(
            f"{operator} has no samples, so {otherwise}",
            place=place,
            hint='give the decorator samples=opwright.shapes("B H", "B H"), one shape for each tensor',
        )
    return told(samples, operator, place)


def told(samples: SampleFactory, operator: str, place: Place | None = None) -> SampleFactory:
    """The same samples, one by one; what goes wrong when they are made ends in a sentence.

    Args:
        samples: Of a user, so it may raise, or give something else.
        operator: What it is called.
        place: Where its reference is defined.

    Returns:
        A factory that raises SamplesMissing where `samples` raises, or gives what is no Sample.
    """

    def made(device: str, dtype: torch.dtype) -> Iterator[Sample]:
        try:
            for sample in samples(device, dtype):
                if not isinstance(sample, Sample):
                    raise TypeError(f"{type(sample).__name__} is no opwright.Sample")
                yield sample
        except OpwrightError:
            raise
        except Exception as error:
            message = str(error).strip().partition("\n")[0]
            fact = f"the samples of {operator} cannot be made: {type(error).__name__}: {message}".removesuffix(": ")
            raise SamplesMissing(fact, place=place, hint=_FORM) from error

    return made


@dataclass(frozen=True, slots=True)
class MadeWhenAskedFor(Sequence[Sample]):
    """Samples that are made anew, the same ones, each time that they are read.

    Attributes:
        size: How many there are.
        make: Makes the one at an index.
    """

    size: int
    make: Callable[[int], Sample]

    @overload
    def __getitem__(self, index: int) -> Sample: ...

    @overload
    def __getitem__(self, index: slice) -> list[Sample]: ...

    def __getitem__(self, index: int | slice) -> Sample | list[Sample]:
        """One of them, or a list of some."""
        found = range(self.size)[index]
        return self.make(found) if isinstance(found, int) else [self.make(each) for each in found]

    def __len__(self) -> int:
        """How many there are."""
        return self.size


@dataclass(frozen=True, slots=True)
class Dimension:
    """A size of a tensor: a sum of products of letters and integers."""

    products: tuple[tuple[int | str, ...], ...]

    def letters(self) -> list[str]:
        """List the letters in it, in order of appearance."""
        return [factor for product in self.products for factor in product if isinstance(factor, str)]

    def size(self, sizes: Mapping[str, int]) -> int:
        """Evaluate it where each letter has a size."""
        return sum(
            prod(sizes[factor] if isinstance(factor, str) else factor for factor in product)
            for product in self.products
        )


@dataclass(frozen=True, slots=True)
class Shapes:
    """A sample factory that fills tensors of given shapes with reproducible normal numbers. Made by `shapes`."""

    tensors: tuple[tuple[Dimension, ...], ...]
    sizes: tuple[Mapping[str, int], ...]

    def __call__(self, device: str, dtype: torch.dtype) -> Sequence[Sample]:
        """Return one sample for each set of sizes; each is made when it is asked for, as the last ones can be large."""
        return MadeWhenAskedFor(len(self.sizes), lambda index: self._sample(self.sizes[index], device, dtype))

    def small(self, device: str, dtype: torch.dtype) -> list[Sample]:
        """Return tiny samples: first one of distinct primes, then those where letters are 1 and 0.

        Ones and zeros are given to all letters together and to each letter alone.
        """
        letters = _letters(self.tensors)
        primes = dict(zip(letters, cycle(_TINY_SIZES), strict=False))
        extremes = [primes | dict.fromkeys(chosen, size) for size in (1, 0) for chosen in _all_and_each(letters)]
        return [self._sample(sizes, device, dtype) for sizes in (primes, *extremes)]

    def _sample(self, sizes: Mapping[str, int], device: str, dtype: torch.dtype) -> Sample:
        name = " ".join(f"{letter}={size}" for letter, size in sizes.items())
        shapes = [tuple(dimension.size(sizes) for dimension in tensor) for tensor in self.tensors]
        return Sample(tuple(_normal(shape, seed, device, dtype) for seed, shape in enumerate(shapes)), name=name)


def shapes(*specs: str, **sizes: int | Sequence[int]) -> Shapes:
    """Describe samples by the shapes of their tensors.

    `shapes("B 3*S", "B S", B=(16, 64), S=128)` makes two samples, "B=16 S=128" and "B=64 S=128", of two tensors each.

    The tensors are of floating-point or complex numbers; for masks, integers and numbers, write a function of a device
    and a dtype that returns a list, such as `[opwright.Sample((x, 2.0))]`. The grammar of a specification::

        tensor    ::= dimension*                separated by spaces; none of them means 0-dimensional
        dimension ::= product ("+" product)*    "F+S"
        product   ::= factor ("*" factor)*      "3*S"
        factor    ::= integer | letter

    Args:
        specs: One for each positional argument, in this grammar. Parameters with a default value may be left out.
        sizes: For every letter one size, or the sizes it takes from sample to sample; None at all for small defaults.

    Raises:
        ShapesUnreadable: A specification is not in the grammar, or letters and sizes do not fit.
    """
    for spec in specs:
        if not isinstance(spec, str):
            fact = f'{spec!r} is not the shape of a tensor, such as "B S"'
            number = "samples=lambda device, dtype: [opwright.Sample((x, 2.0))]"
            hint = f"for a number, give the parameter a default, or write {number}"
            raise ShapesUnreadable(fact, hint=hint)
    tensors = tuple(tuple(_dimension(word, spec) for word in spec.split()) for spec in specs)
    letters = _letters(tensors)
    if not sizes:
        defaults = {letter: _DEFAULT_STEP * (index + 1) for index, letter in enumerate(letters)}
        return Shapes(tensors, (defaults,))
    return Shapes(tensors, _zipped(letters, sizes))


def tensors_in(value: object) -> list[torch.Tensor]:
    """List the tensors in nested lists, tuples and dicts, in order."""
    match value:
        case torch.Tensor():
            return [value]
        case list() | tuple():
            return [tensor for element in value for tensor in tensors_in(element)]
        case Mapping():
            return [tensor for element in value.values() for tensor in tensors_in(element)]
        case _:
            return []


def _map_tensors(function: Callable[[torch.Tensor], torch.Tensor], value: Any) -> Any:
    match value:
        case torch.Tensor():
            return function(value)
        case tuple() if hasattr(value, "_fields"):
            return type(value)(*(_map_tensors(function, element) for element in value))
        case list() | tuple():
            return type(value)(_map_tensors(function, element) for element in value)
        case Mapping():
            return {key: _map_tensors(function, element) for key, element in value.items()}
        case _:
            return value


def _dimension(word: str, spec: str) -> Dimension:
    products = tuple(tuple(_factor(text, spec) for text in product.split("*")) for product in word.split("+"))
    return Dimension(products)


def _factor(text: str, spec: str) -> int | str:
    if not _FACTOR.fullmatch(text):
        raise ShapesUnreadable(
            f"the shape {spec!r} has {text!r} where a letter or an integer is expected",
            hint='write dimensions with spaces between them and none within them, such as "B 3*S F+S"',
        )
    return int(text) if text.isdigit() else text


def _letters(tensors: Iterable[Iterable[Dimension]]) -> list[str]:
    return list(dict.fromkeys(letter for tensor in tensors for dimension in tensor for letter in dimension.letters()))


def _zipped(letters: Sequence[str], sizes: Mapping[str, int | Sequence[int]]) -> tuple[Mapping[str, int], ...]:
    if missing := [letter for letter in letters if letter not in sizes]:
        raise ShapesUnreadable(f"no size is given for {', '.join(missing)}", hint=f"add {missing[0]}=16, for example")
    if unknown := [letter for letter in sizes if letter not in letters]:
        raise ShapesUnreadable(f"a size is given for {', '.join(unknown)}, which no shape contains")
    series = {letter: (given,) if isinstance(given, int) else tuple(given) for letter, given in sizes.items()}
    for letter, values in series.items():
        if not values or any(not isinstance(size, int) or size < 0 for size in values):
            raise ShapesUnreadable(f"{letter}={sizes[letter]!r} is not a size, nor a sequence of sizes")
    lengths = {len(values) for values in series.values()} - {1}
    if len(lengths) > 1:
        counts = ", ".join(f"{letter} has {len(values)}" for letter, values in series.items())
        raise ShapesUnreadable(f"the letters are given different numbers of sizes: {counts}")
    count = max(lengths, default=1)
    return tuple({letter: values[index % len(values)] for letter, values in series.items()} for index in range(count))


def _all_and_each(letters: Sequence[str]) -> list[Sequence[str]]:
    if len(letters) < 2:
        return [letters] if letters else []
    return [letters, *([letter] for letter in letters)]


def _normal(shape: tuple[int, ...], seed: int, device: str, dtype: torch.dtype) -> torch.Tensor:
    """Draw in float64 whatever the dtype, so that every dtype sees the same numbers, rounded."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.complex128 if dtype.is_complex else torch.float64
    return torch.randn(shape, generator=generator, dtype=drawn).to(device=device, dtype=dtype)
