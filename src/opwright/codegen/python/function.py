"""The "function" rung: a Python module with a `torch.autograd.Function` written in torch operations.

Only inputs are saved, and backward is made of differentiable torch operations on them and on the cotangents, so
autograd can differentiate it again, to any order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from opwright.codegen.allocator import allocate
from opwright.codegen.placeholders import placeholder, plain_refusals, with_placeholders
from opwright.codegen.python.body import Body, spell_body
from opwright.codegen.python.entry import entry_lines
from opwright.codegen.python.layout import ConstantParameter, FunctionLayout, TensorParameter
from opwright.codegen.python.line_breaks import reduce_assignment
from opwright.codegen.python.names import PYTHON
from opwright.codegen.python.statement import Statement, needed_for
from opwright.ir.program import Program
from opwright.ir.verifier import verify

_INDENT = "    "


def emit_function(name: str, forward: Program, backward: Program | None, layout: FunctionLayout) -> str:
    """Write a module with an `autograd.Function`, and a function of that name which applies it.

    Args:
        name: The name of the function.
        forward: Takes the operator's tensors and gives its outputs.
        backward: Takes the operator's tensors and the cotangents that the layout names, and gives gradients;
            None if there are none.
        layout: The interface of the operator.

    Returns:
        The text of the module; the same for the same arguments.

    Raises:
        NoKernel: If one of the Programs does something that torch operations on whole tensors do not spell.
    """
    with plain_refusals():
        draft = _draft(name, _drafted(forward), backward and _drafted(backward), _with_placeholders(layout))
    return allocate([draft], PYTHON).spell(draft)


def _drafted(program: Program) -> Program:
    verify(program)
    return with_placeholders(program)


def _with_placeholders(layout: FunctionLayout) -> FunctionLayout:
    def parameter(given: TensorParameter | ConstantParameter) -> TensorParameter | ConstantParameter:
        if isinstance(given, ConstantParameter):
            return replace(given, name=placeholder(given.name))
        return TensorParameter(placeholder(given.name), given.gradient and placeholder(given.gradient))

    cotangents = tuple(name and placeholder(name) for name in layout.cotangents)
    return replace(layout, parameters=tuple(map(parameter, layout.parameters)), cotangents=cotangents)


def _draft(name: str, forward: Program, backward: Program | None, layout: FunctionLayout) -> str:
    class_name = "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Function"
    derivative = None if backward is None else _derivative(backward, layout)
    is_parted = sum(name is not None for name in layout.cotangents) > 1 and derivative is not None
    methods = _forward_in_parts if is_parted else _forward
    lines = [
        *_header(layout),
        "",
        "import torch",
        "",
        "",
        f"class {class_name}(torch.autograd.Function):",
        f'{_INDENT}"""{layout.operator}{", forward and backward" if derivative else ""}."""',
        "",
        *methods(forward, derivative, layout, class_name),
        *(["", *_backward(derivative, layout, class_name if is_parted else None)] if derivative else []),
        *(["", *_of_used(class_name)] if is_parted else []),
        "",
        "",
        *entry_lines(name, class_name, forward, layout),
    ]
    return "\n".join(lines) + "\n"


def _header(layout: FunctionLayout) -> list[str]:
    return [
        f"# {layout.operator} as a torch.autograd.Function, in torch operations.",
        f"# Written by opwright {layout.version} from {layout.operator} at {layout.place}.",
        *([f"# See it again with: {layout.command}"] if layout.command else []),
        "# Only inputs are saved, and backward can be differentiated again, to any order.",
    ]


@dataclass(frozen=True, slots=True)
class _Derivative:
    """Backward in Python.

    Attributes:
        body: Its assignments.
        saved: The tensors that it reads.
        cotangents: For each output of forward, the name of its cotangent; None if it has no derivative.
        gradients: For each tensor parameter, the name of its gradient; None if it has none.
    """

    body: Body
    saved: tuple[str, ...]
    cotangents: tuple[str | None, ...]
    gradients: tuple[str | None, ...]


def _derivative(backward: Program, layout: FunctionLayout) -> _Derivative:
    body = spell_body(backward, {buffer.name: buffer.name for buffer in backward.inputs}, own_outputs=False)
    read = {name for statement in (*body.sizes, *body.statements) for name in statement.reads} | set(body.outputs)
    gradient_of = dict(zip(backward.outputs, body.outputs, strict=True))
    return _Derivative(
        body,
        saved=tuple(tensor.name for tensor in layout.tensors if tensor.name in read),
        cotangents=layout.cotangents,
        gradients=tuple(gradient_of[t.gradient] if t.gradient is not None else None for t in layout.tensors),
    )


def _forward(forward: Program, derivative: _Derivative | None, layout: FunctionLayout, _: str) -> Iterator[str]:
    names = [tensor.name for tensor in layout.tensors]
    body = _forward_body(forward, layout)
    constant = _constant(body, derivative)
    yield f"{_INDENT}@staticmethod"
    yield f"{_INDENT}def forward({', '.join(['ctx', *names])}):"
    if derivative and derivative.saved:
        yield f"{_INDENT * 2}ctx.save_for_backward({', '.join(derivative.saved)})"
    yield from _assignments((*body.sizes, *body.statements))
    if constant:
        yield f"{_INDENT * 2}ctx.mark_non_differentiable({', '.join(constant)})"
    yield f"{_INDENT * 2}return {', '.join(body.outputs)}{'' if layout.bare or len(body.outputs) > 1 else ','}"


def _forward_in_parts(
    forward: Program, derivative: _Derivative | None, layout: FunctionLayout, class_name: str
) -> Iterator[str]:
    """Forward where several outputs have cotangents: `of_used` calls the function that computes them."""
    names = ", ".join(tensor.name for tensor in layout.tensors)
    body = _forward_body(forward, layout)
    constant = _constant(body, derivative)
    outputs, call = ", ".join(body.outputs), f"{class_name}.compute({names})"
    yield f"{_INDENT}@staticmethod"
    yield f"{_INDENT}def compute({names}):"
    yield from _assignments((*body.sizes, *body.statements))
    yield f"{_INDENT * 2}return {outputs}"
    yield ""
    yield f"{_INDENT}@staticmethod"
    yield f"{_INDENT}def forward(ctx, {names}):"
    yield f"{_INDENT * 2}ctx.set_materialize_grads(False)"
    yield f"{_INDENT * 2}ctx.save_for_backward({names})"
    if constant:
        yield f"{_INDENT * 2}{outputs} = {call}"
        yield f"{_INDENT * 2}ctx.mark_non_differentiable({', '.join(constant)})"
    yield f"{_INDENT * 2}return {outputs if constant else call}"


def _forward_body(forward: Program, layout: FunctionLayout) -> Body:
    return spell_body(forward, {tensor.name: tensor.name for tensor in layout.tensors}, own_outputs=True)


def _constant(body: Body, derivative: _Derivative | None) -> list[str]:
    """The outputs that have no derivative."""
    cotangents = derivative.cotangents if derivative else (None,) * len(body.outputs)
    return [output for output, tangent in zip(body.outputs, cotangents, strict=True) if tangent is None]


def _backward(derivative: _Derivative, layout: FunctionLayout, parted: str | None) -> Iterator[str]:
    """Backward; `parted` is the class, if several outputs have cotangents."""
    names = [tensor.name for tensor in layout.tensors]
    saved = names if parted else derivative.saved
    cotangents = [name or f"_grad_output_{position}" for position, name in enumerate(derivative.cotangents)]
    yield f"{_INDENT}@staticmethod"
    yield f"{_INDENT}def backward({', '.join(['ctx', *cotangents])}):"
    if saved:
        yield f"{_INDENT * 2}{f'({saved[0]},)' if len(saved) == 1 else ', '.join(saved)} = ctx.saved_tensors"
    if parted:
        arriving = [name for name in derivative.cotangents if name]
        inputs = f"({', '.join(names)}{',' if len(names) == 1 else ''})"
        yield f"{_INDENT * 2}if {' or '.join(f'{name} is None' for name in arriving)}:"
        yield f"{_INDENT * 3}return {parted}.of_used({inputs}, ({', '.join(cotangents)}))"
    yield from _assignments(derivative.body.sizes)
    yield from _gradients(derivative.body.statements, derivative.gradients)
    yield f"{_INDENT * 2}return {', '.join(name or 'None' for name in derivative.gradients)}"


def _of_used(class_name: str) -> Iterator[str]:
    """The backward pass of some outputs, by autograd; a formula for each set of them would be many."""
    yield from (
        f"{_INDENT}@staticmethod",
        f"{_INDENT}def of_used(inputs, grads):",
        f'{_INDENT * 2}"""Differentiate the outputs that were used: zero times an infinite derivative would be NaN."""',
        f"{_INDENT * 2}again = torch.is_grad_enabled()",
        f"{_INDENT * 2}with torch.enable_grad():",
        f"{_INDENT * 3}given = [each.view_as(each) for each in inputs]",
        f"{_INDENT * 3}made = {class_name}.compute(*given)",
        f"{_INDENT * 2}pairs = zip(made, grads)",
        f"{_INDENT * 2}used = [(each, grad) for each, grad in pairs if grad is not None and each.requires_grad]",
        f"{_INDENT * 2}if not used:",
        f"{_INDENT * 3}return (None,) * len(inputs)",
        f"{_INDENT * 2}sources = [each for each in given if each.requires_grad]",
        f"{_INDENT * 2}made, grads = zip(*used)",
        f"{_INDENT * 2}found = iter(torch.autograd.grad(made, sources, grads, create_graph=again, allow_unused=True))",
        f"{_INDENT * 2}return tuple(next(found) if each.requires_grad else None for each in given)",
    )


def _gradients(statements: Sequence[Statement], gradients: Sequence[str | None]) -> Iterator[str]:
    """Statements that several gradients need, then those of each, if it is asked for."""
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
        yield from reduce_assignment(", ".join(statement.names), statement.value, indent)
