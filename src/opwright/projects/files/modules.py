"""The `nn.Module` of an ejected project: what is learned is a parameter, the rest comes with the call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from opwright.codegen.placeholders import placeholder
from opwright.projects.files.parameters import Parameters, class_stem, with_own_names
from opwright.samples import Dimension, SampleFactory, Shapes

_LEARNED = re.compile(r"(?:.*_)?(?:weight|bias|gamma|beta)(?:_.*)?")
_INDENT = "    "


@dataclass(frozen=True, slots=True)
class ModuleParts:
    """What a module is made of.

    Attributes:
        learned: Tensors that are parameters of the module.
        given: Tensors that its forward takes.
        shapes: The shape of each learned tensor, where the samples say it in letters; else empty.
        order: The letters in the order of the samples.
    """

    learned: tuple[str, ...]
    given: tuple[str, ...]
    shapes: dict[str, tuple[Dimension, ...]]
    order: tuple[str, ...]

    @property
    def letters(self) -> tuple[str, ...]:
        """Sizes that the module is made for."""
        own = {letter for shape in self.shapes.values() for letter in _letters(shape)}
        return tuple(letter for letter in self.order if letter in own)


def module_parts(parameters: Parameters, samples: SampleFactory | None) -> ModuleParts:
    """Tell learned tensors, by their names, from those that come with a call."""
    learned = tuple(name for name in parameters.tensors if _LEARNED.fullmatch(name))
    given = tuple(name for name in parameters.tensors if name not in learned)
    shapes: dict[str, tuple[Dimension, ...]] = {}
    if isinstance(samples, Shapes):
        known = dict(zip(parameters.names, samples.tensors, strict=False))
        shapes = {name: known[name] for name in learned if name in known}
    tensors = samples.tensors if isinstance(samples, Shapes) else ()
    order = tuple(dict.fromkeys(letter for shape in tensors for size in shape for letter in size.letters()))
    parts = ModuleParts(learned, given, shapes, order)
    spoken = len(shapes) == len(learned) and not set(parts.letters) & {*parameters.names, "device", "dtype", "torch"}
    return parts if spoken else ModuleParts(learned, given, {}, ())


def module_module(name: str, parameters: Parameters, parts: ModuleParts) -> str:
    """Write the module.

    Raises:
        NotEjectable: If its constructor or its forward needs the name of a parameter for something else.
    """
    drafted = replace(
        parts,
        learned=tuple(map(placeholder, parts.learned)),
        given=tuple(map(placeholder, parts.given)),
        shapes={placeholder(each): shape for each, shape in parts.shapes.items()},
    )
    with_own_names("\n".join(_constructor(parameters.drafted(), drafted)))
    with_own_names("\n".join(_forward(name, parameters.drafted(), drafted)))
    return "\n".join(_lines(name, parameters, parts)) + "\n"


def _lines(name: str, parameters: Parameters, parts: ModuleParts) -> Iterator[str]:
    holds = f" that holds {_list(parts.learned)}" if parts.learned else ""
    yield f'"""{name} as a module{holds}."""'
    yield ""
    if any(len(shape) > 1 for shape in parts.shapes.values()):
        yield "import math"
        yield ""
    yield "import torch"
    yield ""
    yield f"from {name}.function import {name}"
    yield ""
    yield ""
    yield f"class {class_stem(name)}(torch.nn.Module):"
    yield from _indented(_body(name, parameters, parts))


def _body(name: str, parameters: Parameters, parts: ModuleParts) -> Iterator[str]:
    yield from _docstring(name, parameters, parts)
    if parts.learned or parameters.constants:
        yield ""
        yield from _constructor(parameters, parts)
    if parts.shapes:
        yield ""
        yield from _reset(parts)
    yield ""
    yield from _forward(name, parameters, parts)
    if parameters.constants:
        yield ""
        yield "def extra_repr(self) -> str:"
        yield f'{_INDENT}"""The constants, for `print`."""'
        shown = ", ".join(f"{each}={{self.{each}!r}}" for each in parameters.constants)
        yield f'{_INDENT}return f"{shown}"'


def _forward(name: str, parameters: Parameters, parts: ModuleParts) -> Iterator[str]:
    call = parameters.call(name, {}, {each: f"self.{each}" for each in (*parts.learned, *parameters.constants)})
    annotated = ", ".join(["self", parameters.annotated(parts.given).replace("*, ", "")] if parts.given else ["self"])
    yield f"def forward({annotated}):"
    yield f'{_INDENT}"""Run {name}."""'
    yield f"{_INDENT}return {call}"


def _docstring(name: str, parameters: Parameters, parts: ModuleParts) -> Iterator[str]:
    if not (parts.letters or parameters.constants or parts.learned):
        yield f'"""{name}; it has no parameters."""'
        return
    yield f'"""{name} with {_list((*parts.learned, *parameters.constants))} of its own.'
    yield ""
    yield "Args:"
    for letter in parts.letters:
        shapes = [f"{each}[{_shape(shape)}]" for each, shape in parts.shapes.items() if letter in _letters(shape)]
        yield f"{_INDENT}{letter}: A size, of {_list(shapes)}."
    for each in () if parts.shapes else parts.learned:
        yield f"{_INDENT}{each}: What the parameter is in the beginning."
    for each in parameters.constants:
        yield f"{_INDENT}{each}: As in `{name}`."
    yield '"""'


def _constructor(parameters: Parameters, parts: ModuleParts) -> Iterator[str]:
    constants = parameters.annotated(parameters.constants).replace("*, ", "")
    sized = [f"{letter}: int" for letter in parts.letters]
    given = [] if parts.shapes else [f"{each}: torch.Tensor" for each in parts.learned]
    where = ["device=None", "dtype=None"] if parts.shapes else []
    yield f"def __init__({', '.join(['self', *sized, *given, *([constants] if constants else []), *where])}) -> None:"
    yield f"{_INDENT}super().__init__()"
    for each in parameters.constants:
        yield f"{_INDENT}self.{each} = {each}"
    for each in parts.learned:
        made = f"torch.empty({_shape(parts.shapes[each])}, device=device, dtype=dtype)" if parts.shapes else each
        yield f"{_INDENT}self.{each} = torch.nn.Parameter({made})"
    if parts.shapes:
        yield f"{_INDENT}self.reset_parameters()"


def _reset(parts: ModuleParts) -> Iterator[str]:
    yield "def reset_parameters(self) -> None:"
    matrices = [each for each, shape in parts.shapes.items() if len(shape) > 1]
    if matrices:
        yield f'{_INDENT}"""Draw as `torch.nn.Linear` does: uniform up to 1 over the root of the number of inputs."""'
        yield f"{_INDENT}bound = 1 / math.sqrt(self.{matrices[0]}[0].numel())"
        yield f"{_INDENT}for parameter in self.parameters():"
        yield f"{_INDENT * 2}torch.nn.init.uniform_(parameter, -bound, bound)"
        return
    yield f'{_INDENT}"""Begin as norms do: with ones for what multiplies and zeros for what is added."""'
    for each in parts.shapes:
        kind = "zeros_" if "bias" in each or "beta" in each else "ones_"
        yield f"{_INDENT}torch.nn.init.{kind}(self.{each})"


def _shape(shape: Sequence[Dimension]) -> str:
    return ", ".join(" + ".join(" * ".join(map(str, product)) for product in size.products) for size in shape)


def _letters(shape: Sequence[Dimension]) -> set[str]:
    return {letter for dimension in shape for letter in dimension.letters()}


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else "nothing"


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (f"{_INDENT}{line}".rstrip() for line in lines)
