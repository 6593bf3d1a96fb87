"""Operators of a package as one C++ source: registrations at the dispatcher, and kernels for programs without Python.

In a C++ program, an operator runs the first kernel that takes the call. It raises if no kernel does, and if gradients
or tangents are asked for, which the stable interface cannot record. In Python, the runtime of the package serves calls
instead; it has the reference.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from opwright.codegen.cpp.line_breaks import broken
from opwright.version import VERSION

Constant = float | int | bool


@dataclass(frozen=True, slots=True)
class PackagedKernel:
    """A kernel that an operator may run.

    Attributes:
        name: The name that it is registered under.
        tensors: Positions of the arguments that it takes, in its order.
        numbers: Positions of the numbers among them, which it takes as tensors.
        constants: The values that it is specialised to, by position.
        bounds: Conditions on numbers: `(position, sign, relation, bound)`.
        made: How many tensors it returns.
        needs_row_major: Whether it takes only contiguous tensors.
        is_cuda: Whether it is a GPU kernel.
    """

    name: str
    tensors: tuple[int, ...]
    numbers: tuple[int, ...]
    constants: Mapping[int, Constant]
    bounds: tuple[tuple[int, int, str, float], ...]
    made: int
    needs_row_major: bool
    is_cuda: bool = False


@dataclass(frozen=True, slots=True)
class PackagedOperator:
    """An operator of a package.

    Attributes:
        name: "namespace::name".
        parameters: Its parameters as a schema spells them.
        types: The type of each parameter in the schema.
        outputs: How many tensors it returns.
        kernels: Tried in this order.
    """

    name: str
    parameters: str
    types: tuple[str, ...]
    outputs: int
    kernels: tuple[PackagedKernel, ...]

    @property
    def schema(self) -> str:
        """Its schema, without the namespace."""
        returns = "Tensor" if self.outputs == 1 else f"({', '.join(['Tensor'] * self.outputs)})"
        return f"{self.short_name}({self.parameters}) -> {returns}"

    @property
    def namespace(self) -> str:
        """The part before the "::"."""
        return self.name.split("::")[0]

    @property
    def short_name(self) -> str:
        """The part after it."""
        return self.name.split("::")[1]


@dataclass(frozen=True, slots=True)
class ProcessorLevel:
    """Kernels for a kind of processor: the name of their library, and what processor and torch must support."""

    name: str
    features: tuple[str, ...]
    capability: str


_TAKEN = {"Tensor": "take({})", "float": "number({})", "int": "Size({})", "bool": "bool({})"}
NUMBER_TYPES = {"float": "double", "int": "Size", "bool": "bool"}


def emit_registration(
    namespace: str,
    operators: Sequence[PackagedOperator],
    levels: Sequence[ProcessorLevel],
    cuda: Sequence[str] = (),
) -> str:
    """Write the source.

    Args:
        namespace: Where the kernels are registered.
        operators: What is in the package.
        levels: The kernels there are, the best first.
        cuda: The libraries of kernels for GPUs, beside that of this source.
    """
    parts = [
        f"// Operators at PyTorch's dispatcher. Written by opwright {VERSION}.",
        '#include "opwright/package.h"\n\nnamespace opwright::emitted {',
        _levels(levels),
        _libraries(cuda),
        *(_function(namespace, operator) for operator in operators),
        "\n".join(map(_register, operators)),
        "}  // namespace opwright::emitted",
        _QUESTIONS,
    ]
    return broken("\n\n".join(parts))


_QUESTIONS = """\
// Which kernels this process runs, why it runs none, and why none for GPUs; nullptr where there is nothing to say.
extern "C" {
OPWRIGHT_VISIBLE const char* opwright_cpu_level() { return opwright::emitted::kernels.level(); }
OPWRIGHT_VISIBLE const char* opwright_load_failure() { return opwright::emitted::kernels.failure(); }
OPWRIGHT_VISIBLE const char* opwright_cuda_failure() { return opwright::emitted::cuda_kernels.failure(); }
}
"""


def _levels(levels: Sequence[ProcessorLevel]) -> str:
    rows = [f'    {{"{level.name}", "{level.capability}", {_test(level)}}},' for level in levels]
    says = "// The kernels for this processor, from the folder of this library."
    return "\n".join([says, "static const Kernels kernels({", *rows, "});"])


def _libraries(cuda: Sequence[str]) -> str:
    rows = [f'    "{library}",' for library in cuda]
    return "\n".join(
        ["// Those for GPUs, where torch has CUDA.", "static const CudaKernels cuda_kernels({", *rows, "});"]
    )


def _test(level: ProcessorLevel) -> str:
    return " && ".join(f'__builtin_cpu_supports("{feature}")' for feature in level.features) or "true"


def _function(namespace: str, operator: PackagedOperator) -> str:
    body = _body(namespace, operator) if set(operator.types) <= set(_TAKEN) else _unreadable(operator)
    return "\n".join(
        [
            f"// {operator.schema}",
            f"static void {operator.short_name}_on_stack(StableIValue* stack, uint64_t, uint64_t) {{",
            *(f"  {line}" for line in body),
            "}",
        ]
    )


def _unreadable(operator: PackagedOperator) -> Iterable[str]:
    strange = ", ".join(sorted(set(operator.types) - set(_TAKEN)))
    yield f'refuse("{operator.name}", "it has parameters of type {strange}, which are read in Python only");'


def _body(namespace: str, operator: PackagedOperator) -> Iterable[str]:
    tensors = [position for position, kind in enumerate(operator.types) if kind == "Tensor"]
    taken = ", ".join(_TAKEN["Tensor"].format(f"stack[{position}]") for position in tensors)
    yield f"const Tensor tensors[] = {{{taken}}};"
    for position, kind in enumerate(operator.types):
        if kind != "Tensor":
            yield f"const {NUMBER_TYPES[kind]} argument_{position} = {_TAKEN[kind].format(f'stack[{position}]')};"
    yield f'refuse_derivatives("{operator.name}", tensors);'
    yield f'if (!kernels.level() || !are_nonempty(tensors)) refuse("{operator.name}", kernels, tensors);'
    for kernel in operator.kernels:
        yield from _attempt(namespace, operator, kernel, tensors)
    yield f'refuse("{operator.name}", kernels, tensors);'


def _attempt(
    namespace: str, operator: PackagedOperator, kernel: PackagedKernel, tensors: Sequence[int]
) -> Iterable[str]:
    conditions = ["cuda_kernels.loaded()"] if kernel.is_cuda else []
    conditions += numbers_are(kernel)
    conditions.append("are_row_major(tensors)" if kernel.needs_row_major else "lie_as_written(tensors)")
    operands = ", ".join(
        f"number_tensor(argument_{position})"
        if position in kernel.numbers
        else f"pass(tensors[{tensors.index(position)}])"
        for position in kernel.tensors
    )
    run = f'run("{namespace}::{kernel.name}", {{{operands}}}, {kernel.made}, stack, {operator.outputs})'
    tests = "".join(f"{condition} && " for condition in conditions).rstrip()
    yield f"if ({tests}" if tests else f"if ({run})"
    if tests:
        yield f"    {run})"
    yield "  return;"


def numbers_are(kernel: PackagedKernel) -> list[str]:
    """Conditions on `argument_<position>`: constants are the kernel's, and numbers within its bounds."""
    constants = [f"is_same(argument_{position}, {_literal(value)})" for position, value in kernel.constants.items()]
    bounds = [
        f"{'-' if sign < 0 else ''}argument_{position} {relation} {_literal(bound)}"
        for position, sign, relation, bound in kernel.bounds
    ]
    return constants + bounds


def _literal(value: Constant) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return '__builtin_nan("")' if math.isnan(value) else f"{'-' if value < 0 else ''}__builtin_inf()"
    return f"Size({value})" if type(value) is int else json.dumps(value)


def _register(operator: PackagedOperator) -> str:
    name = operator.short_name
    return "\n".join(
        [
            f"static const Operator {name}_registration(",
            f'    "{operator.namespace}",',
            f"    {json.dumps(operator.schema)},",
            f'    "{name}", {name}_on_stack);',
        ]
    )
