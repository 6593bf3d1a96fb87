"""How Python with torch spells scalar functions, for whole tensors."""

from __future__ import annotations

from opwright.codegen.infix import TIGHTEST, Template, call, comparison, infix, prefix

# Python's own order: comparisons bind less tightly than |, ^ and &.
_COMPARE, _OR, _XOR, _AND, _SUM, _PRODUCT, PREFIX = range(1, 8)

TEMPLATES: dict[str, Template] = {
    # arithmetic
    "add": infix("+", _SUM),
    "subtract": infix("-", _SUM),
    "multiply": infix("*", _PRODUCT),
    "divide": infix("/", _PRODUCT),
    "negate": prefix("-", PREFIX),
    "remainder": call("torch.remainder", 2),
    "fmod": call("torch.fmod", 2),
    "minimum": call("torch.minimum", 2),
    "maximum": call("torch.maximum", 2),
    "pow": call("torch.pow", 2),
    "hypot": call("torch.hypot", 2),
    "copysign": call("torch.copysign", 2),
    "abs": call("torch.abs", 1),
    "sign": call("torch.sign", 1),
    "sqrt": call("torch.sqrt", 1),
    "rsqrt": call("torch.rsqrt", 1),
    "reciprocal": Template("1 / {}", _PRODUCT, (_PRODUCT + 1,)),
    "floor": call("torch.floor", 1),
    "ceil": call("torch.ceil", 1),
    "trunc": call("torch.trunc", 1),
    "round": call("torch.round", 1),
    # exponentials
    "exp": call("torch.exp", 1),
    "exp2": call("torch.exp2", 1),
    "expm1": call("torch.expm1", 1),
    "log": call("torch.log", 1),
    "log2": call("torch.log2", 1),
    "log10": call("torch.log10", 1),
    "log1p": call("torch.log1p", 1),
    "sigmoid": call("torch.sigmoid", 1),
    # circular and hyperbolic
    "sin": call("torch.sin", 1),
    "cos": call("torch.cos", 1),
    "tan": call("torch.tan", 1),
    "asin": call("torch.asin", 1),
    "acos": call("torch.acos", 1),
    "atan": call("torch.atan", 1),
    "atan2": call("torch.atan2", 2),
    "sinh": call("torch.sinh", 1),
    "cosh": call("torch.cosh", 1),
    "tanh": call("torch.tanh", 1),
    "asinh": call("torch.asinh", 1),
    "acosh": call("torch.acosh", 1),
    "atanh": call("torch.atanh", 1),
    "erf": call("torch.erf", 1),
    "erfc": call("torch.erfc", 1),
    # bits of integers
    "bitwise_and": infix("&", _AND),
    "bitwise_or": infix("|", _OR),
    "bitwise_xor": infix("^", _XOR),
    "bitwise_not": prefix("~", PREFIX),
    "shift_left": call("torch.bitwise_left_shift", 2),
    "shift_right": call("torch.bitwise_right_shift", 2),
    # complex
    "complex": call("torch.complex", 2),
    "real": call("torch.real", 1),
    "imag": call("torch.imag", 1),
    "conj": call("torch.conj", 1),
    "angle": call("torch.angle", 1),
    # truth
    "less": comparison("<", _COMPARE),
    "less_equal": comparison("<=", _COMPARE),
    "greater": comparison(">", _COMPARE),
    "greater_equal": comparison(">=", _COMPARE),
    "equal": comparison("==", _COMPARE),
    "not_equal": comparison("!=", _COMPARE),
    "logical_and": infix("&", _AND),
    "logical_or": infix("|", _OR),
    "logical_xor": infix("^", _XOR),
    "logical_not": prefix("~", PREFIX),
    "is_nan": call("torch.isnan", 1),
    "is_infinite": call("torch.isinf", 1),
    "where": call("torch.where", 3),
}

INTEGER_DIVISION = Template("torch.div({}, {}, rounding_mode='trunc')", TIGHTEST, (0, 0))

# With a number as one operand; these keep the dtype of the tensor, and NaN.
RELU = call("torch.relu", 1)
AT_LEAST = Template("torch.clamp({}, min={})", TIGHTEST, (0, 0))
AT_MOST = Template("torch.clamp({}, max={})", TIGHTEST, (0, 0))
BETWEEN = Template("torch.clamp({}, {}, {})", TIGHTEST, (0, 0, 0))

# torch's functions of two tensors that take no number; for each, the operands that must be tensors.
TENSORS_ONLY: dict[str, tuple[int, ...]] = {
    "atan2": (0, 1),
    "copysign": (0,),
    "complex": (0, 1),
    "fmod": (0,),
    "hypot": (0, 1),
    "maximum": (0, 1),
    "minimum": (0, 1),
}
