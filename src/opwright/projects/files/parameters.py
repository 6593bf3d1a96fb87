"""The parameters of a reference, as an ejected project writes them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from opwright.codegen.allocator import allocate
from opwright.codegen.placeholders import placeholder, plain
from opwright.codegen.python.names import PYTHON
from opwright.errors import NotEjectable
from opwright.tracing.interface.signature import Kind, Parameter, Signature, place_of, read_signature

_TYPES = {"Tensor": "torch.Tensor", "ScalarType": "torch.dtype"}


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a reference.

    Attributes:
        names: All names, in order.
        by_keyword: Keyword-only parameters.
        tensors: Parameters that are tensors, or None.
        constants: Parameters that are numbers, strings and the like.
    """

    signature: Signature
    names: tuple[str, ...]
    by_keyword: frozenset[str]
    tensors: tuple[str, ...]
    constants: tuple[str, ...]

    def drafted(self) -> Parameters:
        """The same parameters with placeholders for their names."""
        renamed = (replace(each, name=placeholder(each.name)) for each in self.signature.parameters)
        return Parameters(
            signature=replace(self.signature, parameters=tuple(renamed)),
            names=tuple(map(placeholder, self.names)),
            by_keyword=frozenset(map(placeholder, self.by_keyword)),
            tensors=tuple(map(placeholder, self.tensors)),
            constants=tuple(map(placeholder, self.constants)),
        )

    def annotated(self, only: tuple[str, ...] | None = None) -> str:
        """Write all or some of them as a definition does, with types and defaults."""
        chosen = [each for each in self.signature.parameters if only is None or each.name in only]
        texts = [_annotated(parameter) for parameter in chosen]
        first = next((at for at, parameter in enumerate(chosen) if parameter.keyword_only), None)
        return ", ".join(texts if first is None else [*texts[:first], "*", *texts[first:]])

    def call(self, function: str, constants: Mapping[str, Any], written: Mapping[str, str]) -> str:
        """Write a call of the reference, with constants or other expressions in place of some arguments."""
        texts = [spelled(constants[name]) if name in constants else written.get(name, name) for name in self.names]
        pairs = zip(self.names, texts, strict=True)
        return f"{function}({', '.join(f'{n}={t}' if n in self.by_keyword else t for n, t in pairs)})"


def parameters_of(reference: Callable[..., Any]) -> Parameters:
    """Read the parameters.

    Raises:
        NotEjectable: If one is a list, tuple or dict of tensors, or has a name that the project needs.
    """
    signature = read_signature(reference)
    for parameter in signature.parameters:
        if parameter.kind is Kind.STRUCTURE or parameter.type is None:
            raise NotEjectable(
                f"{reference.__name__} takes a structure, {parameter.name}",
                place=place_of(reference),
                hint="take each tensor as a parameter of its own, and annotate it: x: torch.Tensor",
            )
    named = signature.parameters
    return Parameters(
        signature=signature,
        names=tuple(parameter.name for parameter in named),
        by_keyword=frozenset(parameter.name for parameter in named if parameter.keyword_only),
        tensors=tuple(parameter.name for parameter in named if parameter.kind is Kind.TENSOR),
        constants=tuple(parameter.name for parameter in named if parameter.kind is not Kind.TENSOR),
    )


def with_own_names(draft: str) -> str:
    """Write a function of the project with the reference's parameter names, which callers use.

    Raises:
        NotEjectable: If the function needs one of these names itself.
    """
    names = allocate([draft], PYTHON)
    for each, given in names.given.items():
        if given != plain(each):
            fact = f"a parameter is named {plain(each)}, a name that the project needs"
            raise NotEjectable(fact, hint="rename it")
    return names.spell(draft)


def class_stem(name: str) -> str:
    """The name of a class: `lltm_cell` becomes `LltmCell`."""
    return "".join(word[:1].upper() + word[1:] for word in name.split("_") if word)


def spelled(value: Any) -> str:
    """A constant as Python writes it."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def _annotated(parameter: Parameter) -> str:
    schema = str(parameter.type)
    optional = schema.endswith("?") or parameter.optional
    bare = schema.removesuffix("?")
    listed = bare.endswith("[]")
    name = _TYPES.get(bare.removesuffix("[]"), bare.removesuffix("[]"))
    text = f"{parameter.name}: {f'list[{name}]' if listed else name}{' | None' if optional else ''}"
    has_default = parameter.default is not inspect.Parameter.empty
    return f"{text} = {spelled(parameter.default)}" if has_default else text
