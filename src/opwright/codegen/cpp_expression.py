"""Scalar expressions as C++: one table of spellings, one emitter."""

from __future__ import annotations

import math
import struct
from typing import assert_never

from opwright.errors import InternalError
from opwright.ir.dtype import DType
from opwright.ir.expression import Apply, Cast, Expression, Literal, Load, Local, children

CPP_TYPES = {
    DType.FLOAT32: "float",
    DType.FLOAT64: "double",
    DType.INT32: "int32_t",
    DType.INT64: "int64_t",
    DType.BOOL: "bool",
}
TORCH_TYPES = {
    DType.FLOAT32: "float32",
    DType.FLOAT64: "float64",
    DType.INT32: "int32",
    DType.INT64: "int64",
    DType.BOOL: "boolean",
}

# How tightly an operator binds, loosest first; a call binds tightest.
_CONDITIONAL, _OR, _XOR, _AND, _EQUALITY, _RELATION, _SUM, _PRODUCT, _PREFIX, _CALL = range(10)

# Function → (spelling, how tightly the spelling binds). What is not here is a function of vmath.h of the same name.
CPP_OPERATORS: dict[str, tuple[str, int]] = {
    "add": ("{} + {}", _SUM),
    "subtract": ("{} - {}", _SUM),
    "multiply": ("{} * {}", _PRODUCT),
    "divide": ("{} / {}", _PRODUCT),
    "reciprocal": ("1 / {}", _PRODUCT),
    "negate": ("-{}", _PREFIX),
    "less": ("{} < {}", _RELATION),
    "less_equal": ("{} <= {}", _RELATION),
    "greater": ("{} > {}", _RELATION),
    "greater_equal": ("{} >= {}", _RELATION),
    "equal": ("{} == {}", _EQUALITY),
    "not_equal": ("{} != {}", _EQUALITY),
    "logical_and": ("{} & {}", _AND),
    "logical_or": ("{} | {}", _OR),
    "logical_xor": ("{} ^ {}", _XOR),
    "logical_not": ("!{}", _PREFIX),
    "bitwise_and": ("{} & {}", _AND),
    "bitwise_or": ("{} | {}", _OR),
    "bitwise_xor": ("{} ^ {}", _XOR),
    "bitwise_not": ("~{}", _PREFIX),
    "where": ("{} ? {} : {}", _CONDITIONAL),
    "minimum": ("min({}, {})", _CALL),
    "maximum": ("max({}, {})", _CALL),
    "is_nan": ("__builtin_isnan({})", _CALL),
    "is_infinite": ("__builtin_isinf({})", _CALL),
}
VMATH_FUNCTIONS = {
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "copysign", "cos", "cosh", "erf",
    "erfc", "exp", "exp2", "expm1", "floor", "fmod", "hypot", "log", "log10", "log1p", "log2", "pow", "remainder",
    "round", "rsqrt", "shift_left", "shift_right", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
}  # fmt: skip
TRANSCENDENTAL = VMATH_FUNCTIONS - {"abs", "ceil", "floor", "round", "sign", "sqrt", "trunc"}


def is_costly(expression: Expression) -> bool:
    """Whether computing it again costs more than reading it again."""
    own = isinstance(expression, Apply) and expression.function in TRANSCENDENTAL
    return own or any(map(is_costly, children(expression)))


def spell_value(expression: Expression) -> str:
    """A scalar expression in C++."""
    return _spell(expression, _CONDITIONAL)


def _spell(expression: Expression, least: int) -> str:
    text, binding = _spell_bare(expression)
    return f"({text})" if binding < least else text


def _spell_bare(expression: Expression) -> tuple[str, int]:
    match expression:
        case Literal(value, dtype):
            text = spell_literal(value, dtype)
            return text, _PREFIX if text.startswith("-") else _CALL
        case Local(name, _):
            return name, _CALL
        case Cast(operand, DType.BOOL):
            return f"{_spell(operand, _EQUALITY + 1)} != 0", _EQUALITY
        case Cast(operand, dtype):
            return f"static_cast<{CPP_TYPES[dtype]}>({_spell(operand, _CONDITIONAL)})", _CALL
        case Apply(function, operands, _) if function in CPP_OPERATORS:
            template, binding = CPP_OPERATORS[function]
            # Floating-point arithmetic is not associative: an operand that does not come first keeps parentheses.
            inner = _CONDITIONAL - 1 if binding == _CALL else binding
            leads = template.startswith("{}") and inner > _CONDITIONAL
            needs = [inner + (position > 0 or not leads) for position in range(len(operands))]
            return template.format(*map(_spell, operands, needs)), binding
        case Apply(function, operands, _):
            if function not in VMATH_FUNCTIONS:
                raise InternalError(f"no C++ spelling of '{function}'")
            return f"{function}({', '.join(_spell(operand, _CONDITIONAL) for operand in operands)})", _CALL
        case Load():
            raise InternalError(f"a load of '{expression.buffer}' was not bound to a name before emission")
        case _:
            assert_never(expression)


def spell_literal(value: float | int | bool, dtype: DType) -> str:
    """A number in C++, exact to the last bit of its dtype."""
    if dtype is DType.BOOL:
        return "true" if value else "false"
    if not dtype.is_floating:
        if value == -(2**63):
            return "INT64_MIN"
        return f"{value}" if dtype is DType.INT32 else f"int64_t({value})"
    suffix = "f" if dtype is DType.FLOAT32 else ""
    if math.isnan(value):
        return f'__builtin_nan{suffix}("")'
    number = _round_to_float32(value) if dtype is DType.FLOAT32 else float(value)
    if math.isinf(number):
        return f"{'-' if number < 0 else ''}__builtin_inf{suffix}()"
    return f"{number!r}{suffix}" if dtype is DType.FLOAT64 else f"{_shortest_float32(number)}f"


def _round_to_float32(value: float) -> float:
    try:
        rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def _shortest_float32(value: float) -> str:
    """The fewest digits that read back as the same float32."""
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if _round_to_float32(float(text)) == value:
            break
    return text if any(mark in text for mark in ".e") else f"{text}.0"
