"""The function that callers of an emitted module use: it checks constants and sizes, and applies the class."""

from __future__ import annotations

import json
from collections.abc import Iterator

from opwright.codegen.python.layout import ConstantParameter, FunctionLayout, TensorParameter
from opwright.codegen.python.values.calls import spell_constant
from opwright.ir.expressions.integer import ONE, Integer, spell, substitute, symbol
from opwright.ir.program import Program, size_symbol

_INDENT = "    "


def entry_lines(name: str, class_name: str, forward: Program, layout: FunctionLayout) -> Iterator[str]:
    """Write the function, line by line."""
    result = "torch.Tensor" if layout.bare else f"tuple[{', '.join(['torch.Tensor'] * len(forward.outputs))}]"
    yield f"def {name}({', '.join(_parameters(layout))}) -> {result}:"
    yield f'{_INDENT}"""Compute {layout.operator}; differentiable to any order."""'
    for parameter in layout.parameters:
        if isinstance(parameter, ConstantParameter):
            yield from _constant_check(parameter, layout)
    yield from _size_check(forward, layout)
    yield f"{_INDENT}return {class_name}.apply({', '.join(tensor.name for tensor in layout.tensors)})"


def _parameters(layout: FunctionLayout) -> list[str]:
    """The parameters; constants at the end have their value as default."""
    texts: list[str] = []
    may_default = True
    for parameter in reversed(layout.parameters):
        if isinstance(parameter, TensorParameter):
            may_default = False
            texts.append(f"{parameter.name}: torch.Tensor")
        else:
            texts.append(f"{parameter.name}={spell_constant(parameter.value)}" if may_default else parameter.name)
    return texts[::-1]


def _constant_check(parameter: ConstantParameter, layout: FunctionLayout) -> list[str]:
    """Refuse other values than the one that the Programs are specialised to."""
    value = spell_constant(parameter.value)
    differs = "is not" if parameter.value is None or isinstance(parameter.value, bool) else "!="
    fact = json.dumps(f"{layout.operator} is written here for {parameter.name}={value}, not ", ensure_ascii=False)[:-1]
    fact = fact.replace("{", "{{").replace("}", "}}")
    return [
        f"{_INDENT}if {parameter.name} {differs} {value}:",
        f'{_INDENT * 2}raise ValueError(f{fact}{{{parameter.name}!r}}")',
    ]


def _size_check(forward: Program, layout: FunctionLayout) -> list[str]:
    """Refuse sizes that break a guard: the code would give wrong results."""
    equalities = _equalities(forward)
    if not equalities:
        return []
    shapes = ", ".join(f"{{[*{tensor.name}.shape]}}" for tensor in layout.tensors)
    first, *others = equalities
    joined = [f"{_INDENT * 2}{first}", *(f"{_INDENT * 2}and {other}" for other in others)]
    return [
        *([f"{_INDENT}sizes_fit = (", *joined, f"{_INDENT})"] if others else [f"{_INDENT}sizes_fit = {first}"]),
        f"{_INDENT}if not sizes_fit:",
        f'{_INDENT * 2}raise ValueError(f"{layout.operator} is not written for sizes {shapes}")',
    ]


def _equalities(forward: Program) -> list[str]:
    shapes = {
        str(size_symbol(buffer.name, dimension)): symbol(f"{buffer.name}.shape[{dimension}]")
        for buffer in forward.inputs
        for dimension in range(len(buffer.shape))
    }

    def written(size: Integer) -> str:
        return spell(substitute(size, shapes))

    ones = [
        f"{buffer.name}.shape[{dimension}] == 1"
        for buffer in forward.inputs
        for dimension, size in enumerate(buffer.shape)
        if size == ONE
    ]
    guards = {
        frozenset((guard.left, guard.right)): f"{written(guard.left)} == {written(guard.right)}"
        for guard in forward.guards
        if guard.relation == "==" and guard.left != guard.right
    }
    return [*ones, *guards.values()]
