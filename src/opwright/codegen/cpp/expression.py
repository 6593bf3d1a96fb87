"""Scalar expressions as C++, for processors and for GPUs: one emitter, and a table of spellings for each dialect."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import assert_never

from opwright.errors import InternalError
from opwright.ir.expressions.conversion import Scalar, convert_number, shortest
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.exact import exact
from opwright.ir.expressions.expression import Apply, Cast, Expression, Literal, Load, Local, children

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
# Types that C++ promotes to int, so that results must be converted back.
_SMALL_INTEGERS = (DType.UINT8, DType.INT8, DType.INT16)
# What numbers are converted to on their way to an integer, as torch does; to small ones it is undefined in C++.
_CONVERTED_BY = {DType.UINT8: DType.INT64, DType.INT8: DType.INT32, DType.INT16: DType.INT32}
_CONVERTED_BY |= {dtype: dtype for dtype in (DType.INT32, DType.INT64)}

# How tightly an operator binds, loosest first; a call binds tightest.
_CONDITIONAL, _OR, _XOR, _AND, _EQUALITY, _RELATION, _SUM, _PRODUCT, _PREFIX, _CALL = range(10)

# Function → (spelling, how tightly the spelling binds). Other functions are those of vmath.h of the same name.
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
}
VMATH_FUNCTIONS = {
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "copysign", "cos", "cosh", "erf",
    "erfc", "exp", "exp2", "expm1", "floor", "fmod", "hypot", "log", "log10", "log1p", "log2", "pow", "remainder",
    "round", "rsqrt", "shift_left", "shift_right", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
}  # fmt: skip
NARROW = {"exp_to_one", "log1p_to_one", "normal_bell", "twice_normal_cdf"}  # parts of functions, and of several
COMPLEX_FUNCTIONS = {"angle", "complex", "conj", "imag", "real"}  # of complex.h
BLENDING = {"blend", "choose", "mask_of"}  # of blend.h
DIVIDING = {"divisor_of"}  # of divisors.h
# Functions of angles, and what they are called in a function with the parameter `angles`, which tells where these are.
OF_ANGLES = {"cos": "cos<angles>", "sin": "sin<angles>", "tan": "tan<angles>"}
OF_COMPLEX_ANGLES = {"cos": "cos<angles>", "exp": "exp<angles>", "sin": "sin<angles>"}
CPP_PREDICATES = {"is_nan": "__builtin_isnan", "is_infinite": "__builtin_isinf"}
_TOLD = {*OF_ANGLES.values(), *OF_COMPLEX_ANGLES.values()}
TRANSCENDENTAL = {*VMATH_FUNCTIONS, *NARROW, *_TOLD} - {
    "abs",
    "ceil",
    "floor",
    "round",
    "sign",
    "sqrt",
    "trunc",
}
_DIVISIONS = {"divide", "reciprocal", "sqrt"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """The spellings in which C++ and CUDA differ.

    Attributes:
        function: The name of a function for operands of a dtype; None if there is none.
        infinities: Infinity, for each real dtype of computation.
        nans: The same for NaN.
    """

    function: Callable[[str, DType], str | None]
    infinities: Mapping[DType, str]
    nans: Mapping[DType, str]


def _cpp_function(name: str, dtype: DType) -> str | None:
    if name == "choose":  # small integers are promoted
        return f"choose<{CPP_TYPES[dtype]}>"
    known = name in VMATH_FUNCTIONS | NARROW | COMPLEX_FUNCTIONS | BLENDING | DIVIDING | _TOLD
    return name if known else CPP_PREDICATES.get(name)


CPP = Dialect(
    function=_cpp_function,
    infinities={DType.FLOAT32: "__builtin_inff()", DType.FLOAT64: "__builtin_inf()"},
    nans={DType.FLOAT32: '__builtin_nanf("")', DType.FLOAT64: '__builtin_nan("")'},
)


def is_costly(expression: Expression) -> bool:
    """Whether computing it again costs more than writing it and reading it again."""
    return _applies(expression, TRANSCENDENTAL | _DIVISIONS)


def is_transcendental(expression: Expression) -> bool:
    """Whether computing it takes tens of instructions."""
    return _applies(expression, TRANSCENDENTAL)


def _applies(expression: Expression, functions: Set[str]) -> bool:
    own = isinstance(expression, Apply) and expression.function in functions
    return own or any(_applies(child, functions) for child in children(expression))


def spell_value(expression: Expression, dialect: Dialect = CPP) -> str:
    """A scalar expression in C++."""
    return _spell(expression, _CONDITIONAL, dialect)


def _spell(expression: Expression, least: int, dialect: Dialect) -> str:
    text, binding = _spell_bare(expression, dialect)
    return f"({text})" if binding < least else text


def _spell_bare(expression: Expression, dialect: Dialect) -> tuple[str, int]:
    match expression:
        case Literal(value, dtype):
            text = spell_literal(value, dtype, dialect)
            return text, _PREFIX if text.startswith("-") else _CALL
        case Local(name, _):
            return name, _CALL
        case Cast(operand, dtype):
            return _spell_cast(operand, dtype, dialect)
        case Apply(_, _, dtype) if dtype in _SMALL_INTEGERS:
            return f"static_cast<{CPP_TYPES[dtype]}>({_spell_apply(expression, dialect)[0]})", _CALL
        case Apply():
            return _spell_apply(expression, dialect)
        case Load():
            raise InternalError(f"a load of '{expression.buffer}' was not bound to a name before emission")
        case _:
            assert_never(expression)


def _spell_apply(expression: Apply, dialect: Dialect) -> tuple[str, int]:
    function, operands = expression.function, expression.operands
    if (subtracted := _subtracted_from_zero(expression)) is not None:
        return f"from_zero({_spell(subtracted, _CONDITIONAL, dialect)})", _CALL
    if function in CPP_OPERATORS:
        template, binding = CPP_OPERATORS[function]
        # Floating-point arithmetic is not associative: an operand that is not the first keeps its parentheses.
        inner = _CONDITIONAL - 1 if binding == _CALL else binding
        leads = template.startswith("{}") and inner > _CONDITIONAL
        needs = [inner + (position > 0 or not leads) for position in range(len(operands))]
        spelled = (_spell(operand, need, dialect) for operand, need in zip(operands, needs, strict=True))
        return template.format(*spelled), binding
    name = dialect.function(function, operands[-1].dtype)
    if name is None:
        raise InternalError(f"no C++ spelling of '{function}' of {operands[-1].dtype.value}")
    return f"{name}({', '.join(_spell(operand, _CONDITIONAL, dialect) for operand in operands)})", _CALL


def _subtracted_from_zero(expression: Apply) -> Expression | None:
    """The `x` of `0 - x` and `-x + 0`, of which compilers lose the sign of zero, see `from_zero` in arithmetic.h."""
    if expression.dtype not in (DType.FLOAT32, DType.FLOAT64):
        return None
    match expression:
        case Apply("subtract", (Literal() as zero, x)):
            pass
        case Apply("add", (Apply("negate", (x,)), Literal() as zero)):
            pass
        case Apply("add", (Literal() as zero, Apply("negate", (x,)))):
            pass
        case _:
            return None
    return x if exact(float(zero.value.real)) == exact(0.0) else None


def _spell_cast(operand: Expression, dtype: DType, dialect: Dialect) -> tuple[str, int]:
    if dtype is DType.BOOL:
        zero = f"{CPP_TYPES[operand.dtype]}(0)" if operand.dtype.is_complex else "0"
        return f"{_spell(operand, _EQUALITY + 1, dialect)} != {zero}", _EQUALITY
    if operand.dtype is DType.BOOL and (dtype.is_floating or dtype.is_complex):
        return _spell_truth(operand, dtype, dialect)
    text = _spell(operand, _CONDITIONAL, dialect)
    if operand.dtype.is_half or dtype.is_half:
        return f"{'to_float' if operand.dtype.is_half else f'to_{dtype.value}'}({text})", _CALL
    if operand.dtype.is_complex and not dtype.is_complex:
        text = f"real({text})"
    if operand.dtype.real.is_floating and dtype in _CONVERTED_BY:
        text = f"truncated<{CPP_TYPES[_CONVERTED_BY[dtype]]}>({text})"
        if _CONVERTED_BY[dtype] is dtype:
            return text, _CALL
    return f"static_cast<{CPP_TYPES[dtype]}>({text})", _CALL


def _spell_truth(operand: Expression, dtype: DType, dialect: Dialect) -> tuple[str, int]:
    """A truth value as a number, by a choice: GCC converts truth values one by one, in ten times the time."""
    number = DType.FLOAT32 if dtype.is_half else dtype.real
    one, zero = (spell_literal(value, number, dialect) for value in (1.0, 0.0))
    text = f"{_spell(operand, _CONDITIONAL + 1, dialect)} ? {one} : {zero}"
    if dtype.is_half:
        return f"to_{dtype.value}({text})", _CALL
    return (f"{CPP_TYPES[dtype]}({text})", _CALL) if dtype.is_complex else (text, _CONDITIONAL)


def spell_literal(value: Scalar, dtype: DType, dialect: Dialect = CPP) -> str:
    """A number in C++, exact to the last bit of its dtype."""
    if dtype is DType.BOOL:
        return "true" if value else "false"
    if dtype.is_complex:
        parts = (spell_literal(part, dtype.real, dialect) for part in (value.real, value.imag))
        return f"{CPP_TYPES[dtype]}({', '.join(parts)})"
    if dtype.is_half:
        return f"to_{dtype.value}({spell_literal(value, DType.FLOAT32, dialect)})"
    real = value.real
    if not dtype.is_floating:
        if real == -(2**63):
            return "INT64_MIN"
        return f"{real}" if dtype is DType.INT32 else f"{CPP_TYPES[dtype]}({real})"
    suffix = "f" if dtype is DType.FLOAT32 else ""
    if math.isnan(real):
        return f"{'-' if math.copysign(1, real) < 0 else ''}{dialect.nans[dtype]}"
    number = convert_number(real, dtype).real
    if math.isinf(number):
        return f"{'-' if number < 0 else ''}{dialect.infinities[dtype]}"
    return f"{shortest(number, dtype)}{suffix}"
