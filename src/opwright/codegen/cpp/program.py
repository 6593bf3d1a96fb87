"""A Program as one C++ source: row functions, a launcher, a registration.

The launcher falls through, so that the reference serves the call, if a tensor has another dtype, rank or device than
the Program expects, if a guard fails, or if an allocation or a library operation of torch fails.
"""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, assert_never

from opwright.codegen.allocator import allocate
from opwright.codegen.cpp.call import emit_call
from opwright.codegen.cpp.expression import CPP_TYPES, TORCH_TYPES
from opwright.codegen.cpp.line_breaks import MOST_COLUMNS, broken
from opwright.codegen.cpp.loops.access import strides_along
from opwright.codegen.cpp.loops.kernels import CppKernels
from opwright.codegen.cpp.loops.shared_functions import SharedFunctions
from opwright.codegen.cpp.names import CPP
from opwright.codegen.cpp.part import Formulas, Part, part_of
from opwright.codegen.cpp.size import spell_condition, spell_size
from opwright.codegen.cpp.used import used
from opwright.codegen.placeholders import plain_refusals, with_placeholders
from opwright.errors import NoKernel
from opwright.ir import program as ir
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.integer import ONE, Condition, Integer
from opwright.passes.order import finish

NAMESPACE = "opwright_kernels"
_LONG_LAUNCHER = 512  # lines; g++ 12 takes 7 ms for each
MOST_ARGUMENTS = 64  # of an operator, in PyTorch's dispatcher; kernels with more take lists


@dataclass(frozen=True, slots=True)
class CppSource:
    """An emitted source.

    Attributes:
        name: The operator it registers in the namespace `opwright_kernels`; it ends in a digest of the text.
        text: The C++.
    """

    name: str
    text: str


class Kernels(Protocol):
    """How a backend writes kernels into the source of a launcher."""

    def definitions(self, program: ir.Program) -> Sequence[str]:
        """The definitions above the launcher of a Program or of one of its cases."""

    def launch(self, kernel: ir.Kernel) -> Sequence[str]:
        """The lines of the launcher that run a kernel."""

    def entering(self) -> Sequence[str]:
        """The first lines of a call, once its tensors are `given`."""

    def memory(self, program: ir.Program) -> Mapping[str, str]:
        """By the names of what kernels compute: the buffers whose memory they take."""


def emit_program(program: ir.Program, formulas: Formulas = lambda _: (), header: str = "") -> CppSource:
    """Write a Program as C++.

    Args:
        program: A Program after the passes.
        formulas: Comment lines for a kernel.
        header: Comment lines for the top.

    Raises:
        NoKernel: If a kernel reads or writes at places that are not affine in its axes, or takes too many arguments.
    """
    parts = [part_of(part, formulas) for part in ir.programs_of(finish(program, "cpp"))]
    shared = SharedFunctions(program.name)
    with plain_refusals():
        draft, registration = emit_launcher(
            program,
            "opwright/kernel.h",
            [(part, CppKernels(part.remarks, shared)) for part in parts],
        )
    names = allocate([draft, registration("")], CPP)
    body = header + broken(names.spell(draft))
    name = f"{program.name}_{digest(body)}"
    return CppSource(name, f"{body}\n{broken(names.spell(registration(name)))}")


def emit_launcher(
    program: ir.Program, header: str, parts: Sequence[tuple[Part, Kernels]]
) -> tuple[str, Callable[[str], str]]:
    """Write a draft of the launcher of a Program.

    Args:
        program: The Program, with its cases.
        header: The headers that the source includes.
        parts: The Program without its cases, and each case, ready for emission, each with its way of writing kernels.

    Returns:
        The source, and the lines that register it under a name; both have placeholders.
    """
    plain, *cases = (LauncherWriter(part, kernels) for part, kernels in parts)
    texts = [f'#include "{header}"\n\nnamespace opwright::emitted {{']
    for emitter in cases:
        texts += emitter.definitions(emitter.unchecked())
    renamed = with_placeholders(
        replace(program, cases=tuple(replace(case, steps=()) for case in program.cases), steps=())
    )
    choices = [line for case, emitter in zip(renamed.cases, cases, strict=True) for line in _choice(case, emitter)]
    texts += plain.definitions([*plain.checked(), *choices])
    return "\n\n".join(texts) + "\n", plain.registration


def digest(text: str) -> str:
    """The last part of a source's name."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _choice(case: ir.Case, emitter: LauncherWriter) -> Iterable[str]:
    """Call the case for these sizes."""
    met = " && ".join(f"{name} == {size}" for name, size in case.sizes)
    yield f"if ({met}) return {emitter.program.name}(given, sizes, made);"


class LauncherWriter:
    """Writes the functions of a Program's kernels, and the one that runs its steps.

    Args:
        part: The Program without cases, or a case.
        kernels: How kernels are written.
        beside: What the function is given beside tensors: sizes, or `numbers` with the inputs that are passed by value.
    """

    def __init__(self, part: Part, kernels: Kernels, beside: str = "const Size* sizes") -> None:
        self.program = program = part.program
        self.computed = part.sizes
        self.kernels = kernels
        self.beside = beside
        self.dtypes = {name: buffer.dtype for name, buffer in ir.buffers_of(program).items()}
        by_library = [step for step in program.steps if isinstance(step, ir.Call | ir.View)]
        self.strided = {target.name for step in by_library for target in ir.targets_of(step)}

    def definitions(self, beginning: Iterable[str]) -> Sequence[str]:
        """The functions of the kernels, and the launcher."""
        return [*self.kernels.definitions(self.program), self._launcher(beginning)]

    def _launcher(self, beginning: Iterable[str]) -> str:
        lines, memory = [*beginning], self.kernels.memory(self.program)
        for step in self.program.steps:
            match step:
                case ir.Kernel():
                    lines += [line for each in step.targets for line in _allocation(each, memory.get(each.name))]
                    lines += self.kernels.launch(step)
                case ir.View():
                    lines += _view(step, kept=step.target.name in self.program.outputs)
                case ir.Number(target, value):
                    lines.append(f"const Size {target.name} = {spell_size(value)};")
                case ir.Iota():
                    pass  # kernels count by themselves
                case ir.Check():
                    lines += _check(step, self.dtypes[step.buffer])
                case ir.Call():
                    lines += emit_call(step) if step.targets else ["{", *(f"  {line}" for line in emit_call(step)), "}"]
                case _:
                    assert_never(step)
        given = {buffer.name for buffer in self.program.inputs}
        for position, name in enumerate(self.program.outputs):
            moved = f"static_cast<Tensor&&>({name})"
            taken = f"row_major({moved})" if name in self.strided else moved
            made = f"take(pass_row_major({name}))" if name in given else taken
            order = self.program.output_orders and self.program.output_orders[position]
            back = f".permuted({_braced(map(order.index, range(len(order))))})" if order else ""
            lines.append(f"made[{position}] = {made}{back};")
        lines.append("return true;")
        lines = used(lines)
        attribute = ["OPWRIGHT_AS_WRITTEN"] if len(lines) > _LONG_LAUNCHER else []
        head = f"static bool {self.program.name}(const Tensor* given, {self.beside}, Tensor* made) {{"
        return "\n".join([*attribute, head, *(f"  {line}" for line in lines), "}"])

    def fits(self) -> Iterable[str]:
        """The lines that say whether the guards hold for `given` tensors of its dtypes and ranks."""
        conditions = " && ".join(spell_condition(guard) for guard in self.program.guards) or "true"
        return used([*self._inputs(), *self._sizes(), f"return {conditions};"])

    def checked(self) -> Iterable[str]:
        """The beginning of a launcher: the inputs and sizes, or false if the Program does not take them."""
        yield from self._inputs()
        yield from _decline_unless(
            "known", [f"{b.name}.is({TORCH_TYPES[b.dtype]}, {len(b.shape)})" for b in self._tensors()]
        )
        yield from self._sizes()
        yield from _guards(self.program.guards)
        yield from self._computed_sizes()

    def unchecked(self) -> Iterable[str]:
        """The same where they are known to fit."""
        yield from self._inputs()
        for buffer in self.program.inputs:
            if buffer.by_value:
                yield f"const {CPP_TYPES[buffer.dtype]} {buffer.name} = numbers.{buffer.name};"
        yield from self._sizes()
        yield from self._computed_sizes()

    def _inputs(self) -> Iterable[str]:
        for position, buffer in enumerate(self._tensors()):
            order = self.program.input_orders and self.program.input_orders[position]
            seen = f" {buffer.name} = given[{position}].permuted({_braced(order)})" if order else ""
            yield f"const Tensor{seen or f'& {buffer.name} = given[{position}]'};"

    def _tensors(self) -> list[ir.Buffer]:
        """The inputs but those that are passed by value, which are the last."""
        return [buffer for buffer in self.program.inputs if not buffer.by_value]

    def _sizes(self) -> Iterable[str]:
        for position, buffer in enumerate(self.program.inputs):
            for place, dimension in enumerate(self.program.input_order(position)):
                yield f"const Size {buffer.name}_size_{dimension} = {buffer.name}.size({place});"
        for position, size in enumerate(self.program.sizes):
            yield f"const Size {size} = sizes[{position}];"

    def _computed_sizes(self) -> Iterable[str]:
        """Divisions come after the guards, which ensure that divisors are not zero."""
        return (f"const Size {name} = {spell_size(size)};" for name, size in self.computed)

    def registration(self, name: str) -> str:
        """The lines that register it under a name."""
        given, sizes, made = len(self.program.inputs), len(self.program.sizes), len(self.program.outputs)
        returns = "Tensor" if made == 1 else f"({', '.join(['Tensor'] * made)})"
        if takes_lists(self.program):
            parameters = ["Tensor[] given", "int[] sizes"]
            taking = [f"Tensor given[{given}];", "take_tensors(stack[0], given);"]
            reading = [f"Size sizes[{sizes or 1}];", f"take_sizes(stack[1], {sizes}, sizes);"]
        else:
            parameters = [f"Tensor {buffer.name}" for buffer in self.program.inputs]
            parameters += [f"int {size}" for size in self.program.sizes]
            tensors = ", ".join(f"take(stack[{position}])" for position in range(given))
            numbers = ", ".join(f"Size(stack[{given + position}])" for position in range(sizes)) or "0"
            taking, reading = [f"const Tensor given[] = {{{tensors}}};"], [f"const Size sizes[] = {{{numbers}}};"]
        schema = f"{name}({', '.join(parameters)}) -> {returns}"
        return "\n".join(
            [
                f"static void {self.program.name}_on_stack(StableIValue* stack, uint64_t, uint64_t) {{",
                *(f"  {line}" for line in (*taking, *self.kernels.entering(), *reading)),
                f"  Tensor made[{made}];",
                f"  finish(stack, {self.program.name}(given, sizes, made), made);",
                "}",
                "",
                "static const Registration registration(",
                *_string_lines(schema),
                f'    "{name}", {self.program.name}_on_stack);',
                "",
                "}  // namespace opwright::emitted",
                "",
            ]
        )


def _string_lines(text: str) -> list[str]:
    """A string as one argument, on as many lines as it takes."""
    pieces = textwrap.wrap(text, MOST_COLUMNS - 8, break_long_words=False, break_on_hyphens=False)
    return [*(f'    "{piece} "' for piece in pieces[:-1]), f'    "{pieces[-1]}",']


def _braced(numbers: Iterable[int]) -> str:
    return f"{{{', '.join(map(str, numbers))}}}"


def _guards(guards: Sequence[Condition]) -> Iterable[str]:
    yield from _decline_unless("valid", [spell_condition(guard) for guard in guards])


def _decline_unless(name: str, conditions: Sequence[str]) -> Iterable[str]:
    if not conditions:
        return
    yield f"const bool {name} = {' && '.join(conditions)};"
    yield f"if (!{name}) return false;"


def _allocation(target: ir.Buffer, dying: str | None) -> Iterable[str]:
    sizes, rank = "nullptr", len(target.shape)
    if rank:
        sizes = f"{target.name}_sizes"
        yield f"const Size {sizes}[] = {{{', '.join(map(spell_size, target.shape))}}};"
    made = f"{TORCH_TYPES[target.dtype]}, sizeof({CPP_TYPES[target.dtype]}), {sizes}, {rank}"
    yield f"Tensor {target.name} = {f'in_memory_of({dying}, {made})' if dying else f'allocate({made})'};"
    yield f"if (!{target.name}) return false;"


def _view(view: ir.View, *, kept: bool) -> Iterable[str]:
    """A strided view of a tensor, for a library operation to read, or to be returned."""
    name = view.target.name
    declared = f"Tensor {name}" if kept else f"const Tensor {name}"
    strides, offset = _strided(view.source, view.indices, len(view.target.shape))
    strides = _as_row_major(strides, view.target.shape) if kept else strides
    if not strides:
        yield f"const Size {name}_offset = {offset};"
        yield f"{declared} = {view.source}.scalar_view({name}_offset);"
        return
    yield f"const Size {name}_sizes[] = {{{', '.join(map(spell_size, view.target.shape))}}};"
    yield f"const Size {name}_strides[] = {{{', '.join(strides)}}};"
    yield f"{declared} = {view.source}.view({name}_sizes, {name}_strides, {offset});"


def _check(check: ir.Check, dtype: DType) -> Iterable[str]:
    """A check of integers: if some are out of range, the call falls through, and the reference raises."""
    all_strides, offset = _strided(check.buffer, check.indices, len(check.shape))
    wide = [dimension for dimension, size in enumerate(check.shape) if size != ONE]
    sizes = ", ".join(spell_size(check.shape[dimension]) for dimension in wide) or "1"
    strides = [all_strides[dimension] for dimension in wide]
    first = f"{check.buffer}.at<const {CPP_TYPES[dtype]}>({offset})"
    bounds = f"{spell_size(check.low)}, {spell_size(check.high)}"
    yield f"if (!is_within({first}, {{{sizes}}}, {{{', '.join(strides) or '0'}}}, {bounds})) return false;"


def _strided(source: str, indices: Sequence[Integer], rank: int) -> tuple[list[str], str]:
    """The strides and the offset of a view, in C++."""
    axes = ir.view_axes(rank)
    strides, offset = strides_along(source, tuple(indices), axes)
    return [strides[axis] or "0" for axis in axes], offset or "0"


def _as_row_major(strides: Sequence[str], shape: Sequence[Integer]) -> list[str]:
    """The strides of a result, with those of dimensions of size one as eager has them: they step over the next one."""
    found: list[str] = []
    for stride, size, following in zip(reversed(strides), reversed(shape), (ONE, *reversed(shape)), strict=False):
        if size == ONE and stride == "0":
            stride = found[-1] if found else "1"
            stride = stride if following == ONE else f"({spell_size(following)}) * ({stride})"
        found.append(stride)
    return found[::-1]


def takes_lists(program: ir.Program) -> bool:
    """Whether a kernel takes its tensors as one list, and its sizes as another."""
    return len(program.inputs) + len(program.sizes) > MOST_ARGUMENTS


def too_many(count: int) -> NoKernel:
    """The refusal of an operator for C++ programs that takes so many tensors and sizes."""
    return NoKernel(
        f"it takes {count} tensors and sizes, and PyTorch passes at most {MOST_ARGUMENTS}",
        hint="make operators of its parts, or pass stacked tensors",
    )
