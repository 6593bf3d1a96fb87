"""tests/samples.py of an ejected project: the arguments of its tests."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from opwright.projects.files.parameters import Parameters
from opwright.projects.templates import code
from opwright.samples import Sample, Shapes
from opwright.tracing.interface.signature import Signature

_MOST_ELEMENTS = 1 << 17
_MOST_STORED = 1 << 16
_MOST_SIZES = 3
_INDENT = "    "

Serves = Callable[[Sample], bool]


@dataclass(frozen=True, slots=True)
class SampleSource:
    """The source of samples.

    Attributes:
        factory: The operator's samples.
        signature: Orders their arguments.
        dtypes: The dtypes that kernels were ejected for.
        serves: Whether a kernel serves a sample.
    """

    factory: Any
    signature: Signature
    dtypes: tuple[torch.dtype, ...]
    serves: Serves

    def bound(self, samples: Sequence[Sample]) -> list[Sample]:
        """The samples with every argument by position."""
        return [Sample(self.signature.bind(tuple(each.args), dict(each.kwargs)), {}, each.name) for each in samples]


def sample_files(name: str, source: SampleSource, parameters: Parameters) -> Mapping[str, str | bytes]:
    """Write the module, and a data file unless the samples are normal numbers of given shapes."""
    facts, files = _by_shapes(source) if isinstance(source.factory, Shapes) else _by_data(source)
    facts |= {"name": name, "dtypes": ", ".join(map(str, source.dtypes)), "call": _call(parameters)}
    return {"tests/samples.py": str(code("ejected", "samples.py", facts)), **files}


def _call(parameters: Parameters) -> str:
    count = len(parameters.names) - len(parameters.by_keyword)
    by_keyword = [f"{name}=arguments[{count + at}]" for at, name in enumerate(parameters.names[count:])]
    return f"function({', '.join([f'*arguments[:{count}]' if by_keyword else '*arguments', *by_keyword])})"


Facts = dict[str, str | None]


def _by_shapes(source: SampleSource) -> tuple[Facts, Mapping[str, bytes]]:
    """Sizes by letter: those that kernels serve, and those that the reference serves."""
    factory: Shapes = source.factory
    dtype = source.dtypes[0]
    tiny = factory.small("cpu", dtype)
    sizes = [*_tiny_sizes(factory), *factory.sizes]
    samples = source.bound([*tiny, *factory("cpu", dtype)])
    small = [(s, n) for s, n in zip(samples, sizes, strict=True) if _elements(s) <= _MOST_ELEMENTS]
    served = [dict(each) for sample, each in small if source.serves(sample)]
    left = [dict(each) for sample, each in small if not source.serves(sample)]
    letters = list(dict.fromkeys(letter for each in sizes for letter in each))
    rest = source.bound([tiny[0]])[0].args[len(factory.tensors) :]
    facts: Facts = {
        "served": _rows(served[:_MOST_SIZES]),
        "left": _rows(left),
        "letters": ", ".join(["dtype", *letters]),
        "shapes": ", ".join(_spell_shape(tensor) for tensor in factory.tensors),
        "rest": f" + {list(rest)!r}" if rest else "",
    }
    return facts, {}


def _tiny_sizes(factory: Shapes) -> list[Mapping[str, int]]:
    """The sizes of `factory.small`, read from the names of its samples."""
    pairs = [[pair.split("=") for pair in sample.name.split()] for sample in factory.small("cpu", torch.float32)]
    return [{letter: int(size) for letter, size in each} for each in pairs]


def _spell_shape(tensor: Sequence[Any]) -> str:
    sizes = ["+".join("*".join(map(str, product)) for product in dimension.products) for dimension in tensor]
    spaced = [size.replace("*", " * ").replace("+", " + ") for size in sizes]
    return f"({', '.join(spaced)}{',' if len(spaced) == 1 else ''})"


def _rows(sizes: Sequence[Mapping[str, int]]) -> str:
    rows = [f"{_INDENT}dict({', '.join(f'{k}={v}' for k, v in each.items())})," for each in sizes]
    return "\n".join(["[", *rows, "]"]) if rows else "[]"


def _by_data(source: SampleSource) -> tuple[Facts, Mapping[str, bytes]]:
    """Store the samples in a file beside the tests; at least the smallest one."""
    stored: dict[str, list[list[list[Any]]]] = {}
    for dtype in source.dtypes:
        samples = sorted(source.bound(list(source.factory("cpu", dtype))), key=_elements)
        small = [each for at, each in enumerate(samples) if at == 0 or _elements(each) <= _MOST_STORED]
        both = [[s for s in small if source.serves(s)], [s for s in small if not source.serves(s)]]
        stored[str(dtype)] = [[[_whole(value) for value in s.args] for s in each] for each in both]
    buffer = io.BytesIO()
    torch.save(stored, buffer)
    return {"shapes": None}, {"tests/samples.pt": buffer.getvalue()}


def _whole(value: Any) -> Any:
    """A tensor that does not share the larger memory of which it is a view."""
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _elements(sample: Sample) -> int:
    return sum(tensor.numel() for tensor in sample.tensors())
