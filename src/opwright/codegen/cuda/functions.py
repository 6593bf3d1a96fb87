"""The functions of CUDA, where its spelling differs from C++: the accurate versions, no fast-math.

They are within the errors that NVIDIA's programming guide lists; eager's kernels call
the same ones.
"""

from __future__ import annotations

from opwright.codegen.cpp.expression import COMPLEX_FUNCTIONS, Dialect
from opwright.ir.expressions.dtype import DType

DEVICE = "__device__ "
"""What stands before functions that run on the GPU."""

# Function → its name for float and for double.
REAL_FUNCTIONS: dict[str, tuple[str, str]] = {
    "abs": ("fabsf", "fabs"),
    "acos": ("acosf", "acos"),
    "acosh": ("acoshf", "acosh"),
    "asin": ("asinf", "asin"),
    "asinh": ("asinhf", "asinh"),
    "atan": ("atanf", "atan"),
    "atan2": ("atan2f", "atan2"),
    "atanh": ("atanhf", "atanh"),
    "ceil": ("ceilf", "ceil"),
    "copysign": ("copysignf", "copysign"),
    "cos": ("cosf", "cos"),
    "cosh": ("coshf", "cosh"),
    "erf": ("erff", "erf"),
    "erfc": ("erfcf", "erfc"),
    "exp": ("expf", "exp"),
    "exp2": ("exp2f", "exp2"),
    "expm1": ("expm1f", "expm1"),
    "floor": ("floorf", "floor"),
    "fmod": ("fmodf", "fmod"),
    "hypot": ("hypotf", "hypot"),
    "log": ("logf", "log"),
    "log10": ("log10f", "log10"),
    "log1p": ("log1pf", "log1p"),
    "log2": ("log2f", "log2"),
    "pow": ("powf", "pow"),
    "round": ("rintf", "rint"),  # half to even, as torch.round
    "rsqrt": ("rsqrtf", "rsqrt"),
    "sin": ("sinf", "sin"),
    "sinh": ("sinhf", "sinh"),
    "sqrt": ("sqrtf", "sqrt"),
    "tan": ("tanf", "tan"),
    "tanh": ("tanhf", "tanh"),
    "trunc": ("truncf", "trunc"),
}
# Overloads in the headers of include/opwright/.
OVERLOADED = {"is_infinite", "is_nan", "remainder", "shift_left", "shift_right", "sigmoid", "sign"}
COMPLEX_TOO = {"abs", "cos", "exp", "log", "pow", "sigmoid", "sin", "sqrt", "tanh"}


def _function(name: str, dtype: DType) -> str | None:
    if dtype.is_floating and name in REAL_FUNCTIONS:
        return REAL_FUNCTIONS[name][dtype is DType.FLOAT64]
    overloaded = name in OVERLOADED or name in COMPLEX_FUNCTIONS or (dtype.is_complex and name in COMPLEX_TOO)
    return name if overloaded or name == "abs" else None


CUDA = Dialect(
    function=_function,
    infinities={DType.FLOAT32: "infinity<float>()", DType.FLOAT64: "infinity<double>()"},
    nans={DType.FLOAT32: "not_a_number<float>()", DType.FLOAT64: "not_a_number<double>()"},
)
