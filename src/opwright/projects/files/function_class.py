"""The `autograd.Function` of one form: kernels compute forward and backward, the reference all other derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch.autograd.function import BackwardCFunction

from opwright.codegen.allocator import allocate
from opwright.codegen.placeholders import columns, placeholder, prefixed
from opwright.codegen.python.names import PYTHON
from opwright.projects.files.parameters import Parameters, class_stem
from opwright.projects.files.wrapped import wrapped
from opwright.projects.kinds import Form
from opwright.tracing.scalars.guards import NumberGuard

_INDENT = "    "
# Arguments are stored as attributes of `ctx`, which has attributes of its own.
_METHODS = replace(PYTHON, reserved=lambda: PYTHON.reserved() | {*dir(BackwardCFunction), "made"})
_REASON = "  # else this pass is differentiated too, and a kernel has no derivative"


def class_name(name: str, form: Form) -> str:
    """The name of a form's `autograd.Function`."""
    return f"{class_stem(name)}Function{form.suffix.removeprefix('_')}"


def calls_otherwise(form: Form, parameters: Parameters) -> bool:
    """Whether the reference takes other arguments than a form's tensors and numbers, or another order."""
    inputs = [parameters.names[position] for position in form.derivation.plan.tensors]
    return inputs != list(parameters.names) or bool(parameters.by_keyword)


def may_be_none(form: Form) -> bool:
    """Whether a class asks for None in place of derivatives of outputs that are not used, or are none of the user's."""
    plan = form.derivation.plan
    keeps_more = len(plan.tangents) < plan.outputs + plan.saved.intermediates
    return bool(plan.gradients) and (keeps_more or has_several_cotangents(form))


def has_several_cotangents(form: Form) -> bool:
    """Whether several outputs have cotangents, so that only some of these may be given."""
    return bool(form.derivation.plan.gradients) and len(form.derivation.plan.tangents) > 1


def function_class(name: str, form: Form, parameters: Parameters) -> str:
    """Write the `autograd.Function` of a form; its methods keep the names of parameters where they are free."""
    draft = _FunctionClass(name, form, parameters.drafted()).draft()
    return "\n".join(wrapped(line) for line in allocate([draft], _METHODS).spell(draft).split("\n"))


@dataclass(frozen=True, slots=True)
class _FunctionClass:
    """Writes a draft of the class, in which the names of parameters and results are placeholders."""

    name: str
    form: Form
    parameters: Parameters

    def draft(self) -> str:
        """The class."""
        plan = self.form.derivation.plan
        methods = [self._forward(), self._setup()]
        methods += [self._backward(), self._jvp()] if plan.gradients else [self._no_tangents()]
        words = f"{self.name} by the kernels of {', '.join(f'{kind.label}.cpp' for kind in self.form.kinds)}."
        head = [
            f"class {class_name(self.name, self.form)}(torch.autograd.Function):",
            f'{_INDENT}"""{words}"""',
        ]
        body = ("\n".join(f"{_INDENT}{each}" for each in ("@staticmethod", *method)) for method in methods)
        return "\n".join(head) + "\n\n" + "\n\n".join(body)

    # -- names -----------------------------------------------------------------------------------------------------

    @property
    def inputs(self) -> list[str]:
        """The arguments of `apply`: tensors, and run-time numbers."""
        return [self.parameters.names[position] for position in self.form.derivation.plan.tensors]

    @property
    def made(self) -> list[str]:
        """The results of the forward kernel: outputs, then saved values."""
        return [placeholder(name) for name in self.form.derivation.forward.outputs]

    @property
    def outputs(self) -> list[str]:
        """The results of the reference."""
        return self.made[: self.form.derivation.plan.outputs]

    @property
    def intermediates(self) -> list[str]:
        """The other values saved for the backward pass."""
        return self.made[self.form.derivation.plan.outputs :]

    @property
    def differentiable(self) -> list[str]:
        """Arguments that have gradients."""
        return [self.parameters.names[position] for position in self.form.derivation.plan.gradients]

    @property
    def numbers(self) -> list[str]:
        """Arguments that are run-time numbers."""
        return [self.parameters.names[position] for position in self.form.derivation.plan.numbers]

    @property
    def integers(self) -> list[str]:
        """Those that are ints."""
        return [self.parameters.names[position] for position in self.form.derivation.plan.integers]

    @property
    def kept(self) -> list[str]:
        """Arguments whose values the backward pass needs."""
        names = [self.parameters.names[position] for position in self.form.derivation.plan.saved.contributing]
        return [name for name in names if name not in self.numbers]

    @property
    def forgotten(self) -> list[str]:
        """Tensor arguments of which only size and dtype matter backward."""
        return [name for name in self.inputs if name not in self.kept and name not in self.numbers]

    def _operand(self, name: str) -> str:
        return self._number(name, name) if name in self.numbers else name

    def _number(self, name: str, value: str) -> str:
        return f"{'integer' if name in self.integers else 'number'}({value})"

    # -- methods ---------------------------------------------------------------------------------------------------

    def _forward(self) -> list[str]:
        plan = self.form.derivation.plan
        conditions = [
            f"{name}.is_contiguous()" for name in self.inputs if plan.needs_row_major and name not in self.numbers
        ]
        conditions += [
            f"-(2**63) <= {name} < 2**63" if name in self.integers else f"abs({name}) < 3e38" for name in self.numbers
        ]
        conditions += [_number_condition(self.parameters.names[p], guard) for p, guard in plan.number_guards]
        declines = ["if not (", f"{_INDENT}{' and '.join(conditions)}", "):", f"{_INDENT}raise Declined"]
        if columns(" and ".join(conditions)) < 90:
            declines = [f"if not ({' and '.join(conditions)}):", f"{_INDENT}raise Declined"]
        single = len(self.made) == 1
        call = f"torch.ops.{self.name}.forward{self.form.suffix}({', '.join(map(self._operand, self.inputs))})"
        result = self.made[0] if single else "made"
        body = [
            *(declines if conditions else []),
            f"{result} = {call}",
            f"if {result if single else 'made[0]'} is None:",
            f"{_INDENT}raise Declined",
            f"return {result}",
        ]
        return [f"def forward({', '.join(self.inputs)}):", *_indented(body)]

    def _setup(self) -> list[str]:
        plan = self.form.derivation.plan
        outputs = self.made[0] if len(self.made) == 1 else ", ".join(self.made)
        constant = [name for position, name in enumerate(self.outputs) if position not in plan.tangents]
        fixed = [*constant, *self.intermediates]
        saved = [*self.kept, *(self.outputs[position] for position in plan.saved.outputs), *self.intermediates]
        body = [f"{_unpacked(self.inputs)} = inputs"] if plan.gradients else []
        body += [f"{outputs} = outputs"] if fixed or plan.saved.outputs else []
        body += [f"ctx.mark_non_differentiable({', '.join(fixed)})"] if fixed else []
        if may_be_none(self.form):
            body += ["ctx.set_materialize_grads(False)"]
        if may_be_none(self.form) and not has_several_cotangents(self.form):
            arriving = _tuple([self.outputs[position] for position in plan.tangents])
            body += [f"ctx.made = [(each.shape, each.dtype, each.device) for each in {arriving}]"]
        if plan.gradients:
            body += [f"ctx.save_for_backward({', '.join(saved)})"]
            body += [f"ctx.save_for_forward({', '.join(n for n in self.inputs if n not in self.numbers)})"]
            body += [f"ctx.{name} = {name}" for name in self.numbers]
            body += [_remembered(name) for name in self.forgotten]
        return ["def setup_context(ctx, inputs, outputs):", *_indented(body or ["pass"])]

    def _backward(self) -> list[str]:
        plan = self.form.derivation.plan
        kept_outputs = [self.outputs[position] for position in plan.saved.outputs]
        saved = [*self.kept, *kept_outputs, *self.intermediates]
        cotangents = [prefixed("grad_", name) for name in self.outputs]
        arriving = [cotangents[position] for position in plan.tangents]
        read = [self._backward_operand(self.parameters.names[position]) for position in plan.saved.arguments]
        sizes = [self._size(position, dimension) for position, dimension in plan.saved.sizes]
        operands = ", ".join([*read, *kept_outputs, *self.intermediates, *arriving, *sizes])
        gradients = [prefixed("grad_", name) for name in self.differentiable]
        returned = ", ".join(prefixed("grad_", name) if name in self.differentiable else "None" for name in self.inputs)
        as_given = returned == ", ".join(gradients) and len(gradients) > 1
        call = f"torch.ops.{self.name}.backward{self.form.suffix}({operands})"
        body = [f"{_unpacked(saved)} = ctx.saved_tensors"] if saved else []
        is_parted = has_several_cotangents(self.form)
        if may_be_none(self.form) and not is_parted:
            body += [f"{_unpacked(arriving)} = filled({_tuple(arriving)}, ctx.made)"]
        if is_parted:
            body += [f"are_used = {' and '.join(f'{name} is not None' for name in arriving)}"]
        body += [f"if {'are_used and ' if is_parted else ''}not torch.is_grad_enabled():{_REASON}"]
        body += _indented(_kernel_gradients(call, gradients, returned, as_given))
        body += self._stand_ins()
        if is_parted:
            pulled = f"pulled_back({self._composed()}, {_tuple(self.differentiable)}, {_tuple(arriving)})"
        else:
            body += [f"_, pull_back = torch.func.vjp({self._composed()}, {', '.join(self.differentiable)})"]
            pulled = f"pull_back({_cotangents(arriving, bare=len(self._gathered()) == 1)})"
        body += [f"return {pulled}"] if as_given else [f"{_unpacked(gradients)} = {pulled}", f"return {returned}"]
        rest = ["*_"] if self.intermediates else []
        return [f"def backward({', '.join(['ctx', *cotangents, *rest])}):", *_indented(body)]

    def _jvp(self) -> list[str]:
        plan = self.form.derivation.plan
        body = self._tangents_of_all() if self.differentiable == self.inputs else self._tangents_of_some()
        found = iter(["tangents"] if len(plan.tangents) == 1 else [f"tangents[{k}]" for k in range(len(plan.tangents))])
        each = [next(found) if position in plan.tangents else "None" for position in range(len(self.made))]
        whole = len(plan.tangents) == len(self.made)
        returned = "return tangents" if whole else f"return {', '.join(each)}"
        parameters = "*tangents" if self.differentiable == self.inputs else ", ".join(map(_tangent, self.inputs))
        return [f"def jvp(ctx, {parameters}):", *_indented([*body, returned])]

    def _tangents_of_all(self) -> list[str]:
        """The body where every input has a tangent."""
        fill = "tangents = filled(tangents, [(each.shape, each.dtype, each.device) for each in inputs])"
        return [
            "inputs = ctx.saved_tensors",
            *([fill] if may_be_none(self.form) else []),
            f"_, tangents = torch.func.jvp({self._composed()}, inputs, tangents)",
        ]

    def _tangents_of_some(self) -> list[str]:
        tensors = [name for name in self.inputs if name not in self.numbers]
        primals, tangents = _tuple(self.differentiable), [*map(_tangent, self.differentiable)]
        likes = f"[(each.shape, each.dtype, each.device) for each in {primals}]"
        fill = f"{_unpacked(tangents)} = filled({_tuple(tangents)}, {likes})"
        return [
            f"{_unpacked(tensors)} = ctx.saved_tensors",
            *([fill] if may_be_none(self.form) else []),
            f"_, tangents = torch.func.jvp({self._composed()}, {primals}, {_tuple(tangents)})",
        ]

    def _no_tangents(self) -> list[str]:
        none = "None" if len(self.made) == 1 else f"({', '.join(['None'] * len(self.made))})"
        return ["def jvp(ctx, *tangents):", f"{_INDENT}return {none}"]

    # -- the reference ---------------------------------------------------------------------------------------------

    def _gathered(self) -> tuple[int, ...]:
        return self.form.derivation.plan.tangents

    def _composed(self) -> str:
        """The reference as a function of the differentiable inputs, returning the differentiable outputs."""
        if len(self._gathered()) == len(self.outputs) and self.differentiable == self.inputs:
            return self._whole
        numbers = {name: f"ctx.{name}" for name in self.numbers}
        call = f"{self._whole}({', '.join(numbers.get(name, name) for name in self.inputs)})"
        head = f"lambda {', '.join(self.differentiable)}: "
        if len(self._gathered()) == len(self.outputs):
            return f"{head}{call}"
        if len(self._gathered()) == 1:
            return f"{head}{call}[{self._gathered()[0]}]"
        return f"{head}tuple({call}[k] for k in {self._gathered()})"

    @property
    def _whole(self) -> str:
        """The reference as a function of tensors and numbers."""
        return f"composed{self.form.suffix}" if calls_otherwise(self.form, self.parameters) else "reference"

    def _stand_ins(self) -> list[str]:
        """Zeros in place of arguments whose values no gradient depends on."""
        return [f"{name} = torch.zeros((), **ctx.{name}_options).expand(ctx.{name}_shape)" for name in self.forgotten]

    def _backward_operand(self, name: str) -> str:
        return self._number(name, f"ctx.{name}") if name in self.numbers else name

    def _size(self, position: int, dimension: int) -> str:
        name = self.parameters.names[position]
        return f"{name}.shape[{dimension}]" if name in self.kept else f"ctx.{name}_shape[{dimension}]"


def _remembered(name: str) -> str:
    """The statement that keeps a tensor's shape, dtype and device, without its elements."""
    options = f'{{"dtype": {name}.dtype, "device": {name}.device}}'
    return f"ctx.{name}_shape, ctx.{name}_options = {name}.shape, {options}"


def _kernel_gradients(call: str, gradients: Sequence[str], returned: str, as_given: bool) -> list[str]:
    if len(gradients) == 1:
        return [f"{gradients[0]} = {call}", f"if {gradients[0]} is not None:", f"{_INDENT}return {returned}"]
    taken_apart = [] if as_given else [f"{_INDENT}{', '.join(gradients)} = grads"]
    result = "grads" if as_given else returned
    return [f"grads = {call}", "if grads[0] is not None:", *taken_apart, f"{_INDENT}return {result}"]


def _number_condition(name: str, guard: NumberGuard) -> str:
    sign = "-" if guard.sign < 0 else ""
    return f"{sign}{name} {guard.relation} {guard.bound!r}"


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"{_INDENT}{line}" for line in lines]


def _tuple(names: Sequence[str]) -> str:
    return f"({names[0]},)" if len(names) == 1 else f"({', '.join(names)})"


def _unpacked(names: Sequence[str]) -> str:
    """The left side of an assignment from a tuple."""
    return f"({names[0]},)" if len(names) == 1 else ", ".join(names)


def _tangent(name: str) -> str:
    return f"{name}_tangent"


def _cotangents(names: Sequence[str], *, bare: bool) -> str:
    return names[0] if bare else _tuple(names)
