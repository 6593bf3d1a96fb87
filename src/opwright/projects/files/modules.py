"""The `nn.Module` of an ejected project: learned tensors are its parameters, the others are arguments of forward."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from opwright.codegen.placeholders import placeholder
from opwright.projects.files.parameters import Parameters, class_stem, with_own_names
from opwright.projects.templates import code
from opwright.samples import Dimension, SampleFactory, Shapes

_LEARNED = re.compile(r"(?:.*_)?(?:weight|bias|gamma|beta)(?:_.*)?")


@dataclass(frozen=True, slots=True)
class ModuleParts:
    """The tensors of a module, and their sizes.

    Attributes:
        learned: Tensors that are parameters of the module.
        given: Tensors that its forward takes.
        shapes: The shape of each learned tensor, if the samples give it in letters; else empty.
        order: The letters in the order of the samples.
    """

    learned: tuple[str, ...]
    given: tuple[str, ...]
    shapes: dict[str, tuple[Dimension, ...]]
    order: tuple[str, ...]

    @property
    def letters(self) -> tuple[str, ...]:
        """The sizes that the constructor takes."""
        own = {letter for shape in self.shapes.values() for letter in _letters(shape)}
        return tuple(letter for letter in self.order if letter in own)

    def shaped_by(self, letter: str) -> list[str]:
        """The learned tensors that a size belongs to, with their shapes."""
        return [f"{each}[{_shape(shape)}]" for each, shape in self.shapes.items() if letter in _letters(shape)]


def module_parts(parameters: Parameters, samples: SampleFactory | None) -> ModuleParts:
    """Separate learned tensors from arguments of forward, by their names."""
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
    draft = code("ejected", "module.py", _facts(name, parameters.drafted(), drafted))
    with_own_names(draft.constructor())
    with_own_names(draft.forward())
    return str(code("ejected", "module.py", _facts(name, parameters, parts)))


def _facts(name: str, parameters: Parameters, parts: ModuleParts) -> dict[str, Any]:
    """The variables of its template."""
    own = (*parts.learned, *parameters.constants)
    constants = [parameters.annotated(parameters.constants).replace("*, ", "")] if parameters.constants else []
    if parts.shapes:
        constructed = [*(f"{letter}: int" for letter in parts.letters), *constants, "device=None", "dtype=None"]
    else:
        constructed = [*(f"{each}: torch.Tensor" for each in parts.learned), *constants]
    return {
        "name": name,
        "stem": class_stem(name),
        "learned": parts.learned,
        "constants": parameters.constants,
        "held": _list(parts.learned),
        "own": _list(own),
        "shapes": {each: _shape(shape) for each, shape in parts.shapes.items()},
        "letters": {letter: _list(parts.shaped_by(letter)) for letter in parts.letters},
        "matrices": [each for each, shape in parts.shapes.items() if len(shape) > 1],
        "constructed": ", ".join(["self", *constructed]),
        "taken": ", ".join(["self", *([parameters.annotated(parts.given).replace("*, ", "")] if parts.given else [])]),
        "call": parameters.call(name, {}, {each: f"self.{each}" for each in own}),
    }


def _shape(shape: Sequence[Dimension]) -> str:
    return ", ".join(" + ".join(" * ".join(map(str, product)) for product in size.products) for size in shape)


def _letters(shape: Sequence[Dimension]) -> set[str]:
    return {letter for dimension in shape for letter in dimension.letters()}


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else "nothing"
