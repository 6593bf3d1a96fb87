"""Scalar expressions as C++: one table of spellings, one emitter."""

from __future__ import annotations

import math
from typing import assert_never

from opwright.errors import InternalError
from opwright.ir.conversion import Scalar, convert_number, shortest
from opwright.ir.dtype import DType
from opwright.ir.expression import Apply, Cast, Expression, Literal, Load, Local, children

CPP_TYPES = {
    DType.BFLOAT16: "BFloat16",
    DType.FLOAT16: "Float16",
    DType.FLOAT32: "float",
    DType.FLOAT64: "double",
    DType.COMPLEX64: "Complex<float>",
    DType.COMPLEX128: "Complex<double>",
    DType.UINT8: "uint8_t",
    DType.INT8: "int8_t",
    DType.INT16: "int16_t",
    DType.INT32: "int32_t",
    DType.INT64: "int64_t",
    DType.BOOL: "bool",
}
TORCH_TYPES = {dtype: dtype.value for dtype in DType} | {DType.BOOL: "boolean"}
# What C++ computes in int, so that every result has to be brought back.
_SMALL_INTEGERS = (DType.UINT8, DType.INT8, DType.INT16)

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
COMPLEX_FUNCTIONS = {"angle", "complex", "conj", "imag", "real"}  # of complex.h
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
        case Cast(operand, dtype):
            return _spell_cast(operand, dtype)
        case Apply(_, _, dtype) if dtype in _SMALL_INTEGERS:
            return f"static_cast<{CPP_TYPES[dtype]}>({_spell_apply(expression)[0]})", _CALL
        case Apply():
            return _spell_apply(expression)
        case Load():
            raise InternalError(f"a load of '{expression.buffer}' was not bound to a name before emission")
        case _:
            assert_never(expression)


def _spell_apply(expression: Apply) -> tuple[str, int]:
    function, operands = expression.function, expression.operands
    if function in CPP_OPERATORS:
        template, binding = CPP_OPERATORS[function]
        # Floating-point arithmetic is not associative: an operand that does not come first keeps parentheses.
        inner = _CONDITIONAL - 1 if binding == _CALL else binding
        leads = template.startswith("{}") and inner > _CONDITIONAL
        needs = [inner + (position > 0 or not leads) for position in range(len(operands))]
        return template.format(*map(_spell, operands, needs)), binding
    if function not in VMATH_FUNCTIONS | COMPLEX_FUNCTIONS:
        raise InternalError(f"no C++ spelling of '{function}'")
    return f"{function}({', '.join(_spell(operand, _CONDITIONAL) for operand in operands)})", _CALL


def _spell_cast(operand: Expression, dtype: DType) -> tuple[str, int]:
    if dtype is DType.BOOL:
        zero = f"{CPP_TYPES[operand.dtype]}(0)" if operand.dtype.is_complex else "0"
        return f"{_spell(operand, _EQUALITY + 1)} != {zero}", _EQUALITY
    text = _spell(operand, _CONDITIONAL)
    if operand.dtype.is_half or dtype.is_half:
        return f"{'to_float' if operand.dtype.is_half else f'to_{dtype.value}'}({text})", _CALL
    if operand.dtype.is_complex and not dtype.is_complex:
        text = f"real({text})"
    if operand.dtype.real.is_floating and dtype in _SMALL_INTEGERS:  # as torch does; C++ leaves it open
        text = f"static_cast<{'int64_t' if dtype is DType.UINT8 else 'int32_t'}>({text})"
    return f"static_cast<{CPP_TYPES[dtype]}>({text})", _CALL


def spell_literal(value: Scalar, dtype: DType) -> str:
    """A number in C++, exact to the last bit of its dtype."""
    if dtype is DType.BOOL:
        return "true" if value else "false"
    if dtype.is_complex:
        return f"{CPP_TYPES[dtype]}({spell_literal(value.real, dtype.real)}, {spell_literal(value.imag, dtype.real)})"
    if dtype.is_half:
        return f"to_{dtype.value}({spell_literal(value, DType.FLOAT32)})"
    real = value.real
    if not dtype.is_floating:
        if real == -(2**63):
            return "INT64_MIN"
        return f"{real}" if dtype is DType.INT32 else f"{CPP_TYPES[dtype]}({real})"
    suffix = "f" if dtype is DType.FLOAT32 else ""
    if math.isnan(real):
        return f'__builtin_nan{suffix}("")'
    number = convert_number(real, dtype).real
    if math.isinf(number):
        return f"{'-' if number < 0 else ''}__builtin_inf{suffix}()"
    return f"{shortest(number, dtype)}{suffix}"
