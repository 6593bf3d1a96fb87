"""CustomOperators → the C++ source that registers them with ONNX Runtime."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence

import onnx_ir as ir
import torch

from opwright.codegen.cpp.size import spell_size
from opwright.deployment.onnx.custom.planned import Attribute, CustomOperator, Variant
from opwright.ir.expressions.integer import Integer, symbols_of
from opwright.ir.program import buffers_of, size_symbol
from opwright.toolchain.cpu_levels import CpuLevel
from opwright.version import VERSION

_KINDS = {ir.AttributeType.INT: "integer", ir.AttributeType.FLOAT: "real", ir.AttributeType.TENSOR: "exact"}


def emit_operators(operators: Sequence[CustomOperator], level: CpuLevel) -> str:
    """Write the source.

    Args:
        operators: The operators.
        level: What the kernels are compiled for.
    """
    parts = [
        f"// Operators of ONNX Runtime. Written by opwright {VERSION}.",
        '#include "operators.h"',
        "namespace {",
        "using namespace opwright_onnx;",
    ]
    for number, operator in enumerate(operators):
        for place, variant in enumerate(operator.variants):
            parts += [_sizes(f"{number}_{place}", operator, variant), _takes(f"{number}_{place}", variant)]
        parts.append(_definition(number, operator))
    parts += ["}  // namespace", _registration(operators, level)]
    return "\n\n".join(parts) + "\n"


def dtype_code(dtype: torch.dtype) -> int:
    """What ONNX calls a dtype."""
    return int(ir.tensor(torch.empty(0, dtype=dtype)).dtype)


def _sizes(name: str, operator: CustomOperator, variant: Variant) -> str:
    """The function that tells the sizes of the results."""
    program, buffers = variant.program, buffers_of(variant.program)
    lines, used = list[str](), set[str]()
    for place, output in enumerate(program.outputs):
        order = program.output_orders and program.output_orders[place]
        shape: tuple[Integer, ...] | None = None if order else buffers[output].shape
        lines.append(f"  made[{place}].rank = {-1 if shape is None else len(shape)};")
        for dimension, size in enumerate(shape or ()):
            lines.append(f"  made[{place}].sizes[{dimension}] = {spell_size(size)};")
            used |= symbols_of(size)
    known = [
        f"  const int64_t {symbol} = given[{operand}]->sizes[{program.input_order(place)[dimension]}];"
        for place, (buffer, operand) in enumerate(zip(program.inputs, variant.operands, strict=True))
        for dimension in range(len(buffer.shape))
        if (symbol := str(size_symbol(buffer.name, dimension))) in used
    ]
    head = f"void sizes_{name}(const AtenTensorHandle* given, Sizes* made) {{"
    return "\n".join([head, *known, *lines, "}"])


def _takes(name: str, variant: Variant) -> str:
    """The function that tells whether a kernel is for these numbers."""
    conditions = [_equal(number, value) for number, value in variant.fixed]
    conditions += [
        f"{'-' if guard.sign < 0 else ''}numbers[{number}] {guard.relation} {_literal(float(guard.bound))}"
        for number, guard in variant.guards
    ]
    return f"bool takes_{name}(const double* numbers) {{ return {' && '.join(conditions) or 'true'}; }}"


def _equal(number: int, value: float) -> str:
    if math.isnan(value):
        return f"numbers[{number}] != numbers[{number}]"
    return f"numbers[{number}] == {_literal(float(value))}"


def _literal(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return '__builtin_nan("")' if math.isnan(value) else f"{'-' if value < 0 else ''}__builtin_inf()"


def _definition(number: int, operator: CustomOperator) -> str:
    variants = [
        f'     {{"{each.source.name}", {_braced(each.operands)}, sizes_{number}_{place}, takes_{number}_{place}}},'
        for place, each in enumerate(operator.variants)
    ]
    return "\n".join(
        [
            f"const Operator operator_{number}(",
            f"    {json.dumps(operator.name)}, {json.dumps(operator.full_name)},",
            f"    {_braced(map(dtype_code, operator.inputs))}, {_braced(map(dtype_code, operator.outputs))},",
            f"    {{{', '.join(map(_attribute, operator.attributes))}}},",
            "    {",
            *variants,
            "    });",
        ]
    )


def _attribute(attribute: Attribute) -> str:
    dtype = dtype_code(torch.int64 if attribute.is_integer else torch.float64)
    return f"{{{json.dumps(attribute.name)}, Kind::{_KINDS[attribute.kind]}, {dtype}}}"


def _registration(operators: Sequence[CustomOperator], level: CpuLevel) -> str:
    domains: dict[str, list[str]] = {}
    for number, operator in enumerate(operators):
        domains.setdefault(operator.domain, []).append(f"&operator_{number}")
    listed = ", ".join(f"{{{json.dumps(domain)}, {{{', '.join(names)}}}}}" for domain, names in domains.items())
    can_run = " && ".join(f'__builtin_cpu_supports("{feature}")' for feature in level.features) or "true"
    return "\n".join(
        [
            'extern "C" __attribute__((visibility("default"))) ort::Status* RegisterCustomOps(',
            "    ort::SessionOptions* options, const ort::ApiBase* base) {",
            f"  return opwright_onnx::add(options, base, {{{listed}}}, {can_run});",
            "}",
        ]
    )


def _braced(numbers: Iterable[int]) -> str:
    return f"{{{', '.join(map(str, numbers))}}}"
