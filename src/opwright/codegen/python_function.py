"""The "function" rung: a Python module with a `torch.autograd.Function` written in torch operations.

Only inputs are saved, and backward is made of differentiable torch operations on them and on the incoming gradients, so
autograd can differentiate it again, to any order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opwright.codegen.python_body import Body, spell_body
from opwright.codegen.python_calls import spell_constant
from opwright.codegen.python_fold import fold_assignment
from opwright.codegen.python_guards import guard_lines
from opwright.codegen.python_names import parameter_name
from opwright.codegen.python_statement import Statement, needed_for
from opwright.ir.program import Program

_INDENT = "    "


@dataclass(frozen=True, slots=True)
class TensorParameter:
    """A tensor that the operator takes; `gradient` is the backward output that is its gradient, None if it has none."""

    name: str
    gradient: str | None = None


@dataclass(frozen=True, slots=True)
class ConstantParameter:
    """A parameter that the Programs are specialised to the value of."""

    name: str
    value: float | int | bool | str | None


@dataclass(frozen=True, slots=True)
class FunctionLayout:
    """What an operator looks like from outside.

    Attributes:
        parameters: All parameters, in order; a tensor has the name of the Programs' input.
        bare: Whether it returns one tensor instead of a tuple.
        operator: What it is called in the header.
        place: Where it is defined, as "file:line".
        version: The version of opwright that writes it.
    """

    parameters: tuple[TensorParameter | ConstantParameter, ...]
    bare: bool
    operator: str
    place: str
    version: str

    @property
    def tensors(self) -> tuple[TensorParameter, ...]:
        """The parameters that are tensors."""
        return tuple(parameter for parameter in self.parameters if isinstance(parameter, TensorParameter))


def emit_function(name: str, forward: Program, backward: Program | None, layout: FunctionLayout) -> str:
    """Write a module with an `autograd.Function`, and a function of that name which applies it.

    Args:
        name: What the function is called.
        forward: Takes the operator's tensors and gives its outputs.
        backward: Takes the operator's tensors, then `grad_output` (for one output) or `grad_output_0 …` (for each
            differentiable output of several), and gives gradients; None if there are none.
        layout: What the operator looks like from outside.

    Returns:
        The text of the module; the same for the same arguments.

    Raises:
        NoKernel: If one of the Programs does something that torch operations on whole tensors do not spell.
    """
    class_name = "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Function"
    sections = [
        _header(layout),
        "import torch",
        "",
        "",
        f"class {class_name}(torch.autograd.Function):",
        f'    """{layout.operator}, forward and backward."""',
        "",
        *_forward(forward, backward, layout),
        *(["", *_backward(forward, backward, layout)] if backward else []),
        "",
        "",
        *_function(name, class_name, forward, layout),
    ]
    return "\n".join(sections) + "\n"


def _header(layout: FunctionLayout) -> str:
    return (
        f"# {layout.operator} as a torch.autograd.Function, in torch operations.\n"
        f"# Written by opwright {layout.version} from {layout.operator} at {layout.place}. Only inputs are saved, and\n"
        "# backward can be differentiated again, to any order.\n"
    )


def _forward(forward: Program, backward: Program | None, layout: FunctionLayout) -> Iterator[str]:
    names = {tensor.name: parameter_name(tensor.name) for tensor in layout.tensors}
    body = spell_body(forward, names, own_outputs=True)
    yield f"{_INDENT}@staticmethod"
    yield f"{_INDENT}def forward(ctx, {', '.join(names.values())}):"
    saved = _saved(backward, layout) if backward else []
    if saved:
        yield f"{_INDENT * 2}ctx.save_for_backward({', '.join(names[name] for name in saved)})"
    yield from _assignments((*body.sizes, *body.statements))
    constant = [text for text, wanted in zip(body.outputs, _tangents(forward, backward), strict=True) if wanted is None]
    if constant:
        yield f"{_INDENT * 2}ctx.mark_non_differentiable({', '.join(constant)})"
    yield f"{_INDENT * 2}return {body.outputs[0] if layout.bare else _tuple(body.outputs)}"


def _tangents(forward: Program, backward: Program | None) -> list[str | None]:
    """For each output, the input of backward that is its incoming gradient; None if it has no derivative."""
    taken = {buffer.name for buffer in backward.inputs} if backward else set()
    count = len(forward.outputs)
    names = [f"grad_output_{position}" for position in range(count)] if count > 1 else ["grad_output"]
    return [name if name in taken else None for name in names]


def _backward_body(backward: Program, layout: FunctionLayout) -> tuple[Body, dict[str, str]]:
    tensors = {tensor.name for tensor in layout.tensors}
    names = {b.name: parameter_name(b.name) if b.name in tensors else b.name for b in backward.inputs}
    return spell_body(backward, names, own_outputs=False), names


def _saved(backward: Program, layout: FunctionLayout) -> list[str]:
    """The tensors that backward reads."""
    body, names = _backward_body(backward, layout)
    read = {name for statement in (*body.sizes, *body.statements) for name in statement.reads} | set(body.outputs)
    return [tensor.name for tensor in layout.tensors if names.get(tensor.name) in read]


def _backward(forward: Program, backward: Program, layout: FunctionLayout) -> Iterator[str]:
    body, names = _backward_body(backward, layout)
    saved = [names[name] for name in _saved(backward, layout)]
    incoming = [name or f"_grad_output_{position}" for position, name in enumerate(_tangents(forward, backward))]
    yield f"{_INDENT}@staticmethod"
    yield f"{_INDENT}def backward(ctx, {', '.join(incoming)}):"
    if saved:
        yield f"{_INDENT * 2}{', '.join(saved)}{',' if len(saved) == 1 else ''} = ctx.saved_tensors"
    yield from _assignments(body.sizes)
    gradient_of = dict(zip(backward.outputs, body.outputs, strict=True))
    gradients = [gradient_of[tensor.gradient] if tensor.gradient else None for tensor in layout.tensors]
    yield from _gradients(body.statements, gradients)
    yield f"{_INDENT * 2}return {', '.join(name or 'None' for name in gradients)}"


def _gradients(statements: Sequence[Statement], gradients: Sequence[str | None]) -> Iterator[str]:
    """What several gradients need, then what each needs alone, if it is asked for."""
    closures = {position: needed_for(statements, [name]) for position, name in enumerate(gradients) if name}
    users = Counter(statement for closure in closures.values() for statement in closure)
    if len(closures) == 1:
        yield from _assignments(statements)
        return
    yield from _assignments([statement for statement in statements if users[statement] > 1])
    alone = {position: [s for s in closure if users[s] == 1] for position, closure in closures.items()}
    names = [gradients[position] for position, own in alone.items() if own]
    if names:
        yield f"{_INDENT * 2}{' = '.join(name for name in names if name)} = None"
    for position, own in alone.items():
        if own:
            yield f"{_INDENT * 2}if ctx.needs_input_grad[{position}]:"
            yield from _assignments(own, _INDENT * 3)


def _assignments(statements: Sequence[Statement], indent: str = _INDENT * 2) -> Iterator[str]:
    for statement in statements:
        yield from fold_assignment(", ".join(statement.names), statement.value, indent)


def _function(name: str, class_name: str, forward: Program, layout: FunctionLayout) -> Iterator[str]:
    result = "torch.Tensor" if layout.bare else f"tuple[{', '.join(['torch.Tensor'] * len(forward.outputs))}]"
    yield f"def {name}({', '.join(_parameters(layout))}) -> {result}:"
    yield f'{_INDENT}"""Compute {layout.operator}; differentiable to any order."""'
    for parameter in layout.parameters:
        if isinstance(parameter, ConstantParameter):
            yield from _constant_lines(parameter, layout)
    yield from guard_lines(forward, layout.operator)
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


def _constant_lines(parameter: ConstantParameter, layout: FunctionLayout) -> list[str]:
    """Refuse another value than the one that the Programs were made for."""
    value = spell_constant(parameter.value)
    differs = "is not" if parameter.value is None or isinstance(parameter.value, bool) else "!="
    return [
        f"{_INDENT}if {parameter.name} {differs} {value}:",
        f"{_INDENT * 2}raise ValueError(f{f'{layout.operator} is written here for {parameter.name}={value}, not'!r} ...)",
    ]


def _tuple(names: Sequence[str]) -> str:
    return f"{names[0]}," if len(names) == 1 else ", ".join(names)
