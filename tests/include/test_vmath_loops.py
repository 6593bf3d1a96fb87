"""GCC vectorises a loop over every (complex) float and inline double function of the headers, and combined ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.include.vmath_functions import BINARY, INLINE_DOUBLE, INLINE_DOUBLE_BINARY, UNARY, compile_with_gcc

COMPLEX = ("exp", "log", "sin", "cos", "tanh", "sqrt", "sigmoid")


def _loop(expression: str, dtype: str) -> str:
    return (
        f"void loop(const {dtype}* x, [[maybe_unused]] const {dtype}* y, {dtype}* out, long count) {{ "
        f'_Pragma("omp simd") for (long i = 0; i < count; ++i) out[i] = {expression}; }}'
    )


LOOPS = {
    **{f"{name} float": _loop(f"{name}(x[i])", "float") for name in UNARY},
    **{f"{name} float": _loop(f"{name}(x[i], y[i])", "float") for name in BINARY},
    **{f"{name} double": _loop(f"{name}(x[i])", "double") for name in INLINE_DOUBLE},
    **{
        f"near {name} {dtype}": _loop(f"{name}<Angles::near>(x[i])", dtype)
        for name in ("sin", "cos", "tan")
        for dtype in ("float", "double")
    },
    **{f"{name} double": _loop(f"{name}(x[i], y[i])", "double") for name in INLINE_DOUBLE_BINARY},
    "lltm cell": _loop("tanh(y[i] + (x[i] > 0 ? x[i] : expm1(x[i])) * sigmoid(y[i])) * sigmoid(x[i])", "float"),
    "gelu": _loop("0.5f * x[i] * (1 + erf(x[i] * 0.70710678f))", "float"),
    "softplus": _loop("x[i] > 20 ? x[i] : log1p(exp(x[i]))", "float"),
    "choice by a mask": (
        "void loop(const float* x, const unsigned char* mask, float* out, long count) { "
        '_Pragma("omp simd") for (long i = 0; i < count; ++i) { const bool kept = mask[i] != 0; '
        "const float value = x[i], masked = !kept ? -__builtin_inff() : value; out[i] = exp(masked - 1.0f); } }"
    ),
    "choice for a whole row": (
        "void loop(const float* x, bool valid, float* out, long count) { const int32_t mask = mask_of(valid); "
        '_Pragma("omp simd") for (long i = 0; i < count; ++i) '
        "{ const float value = blend(mask, x[i], -__builtin_inff()); out[i] = exp(value - 1.0f); } }"
    ),
    **{f"complex {name}": _loop(f"{name}(x[i])", "Complex<float>") for name in COMPLEX},
    **{
        f"near complex {name}": _loop(f"{name}<Angles::near>(x[i])", "Complex<float>") for name in ("exp", "sin", "cos")
    },
    "complex numbers stored whole": (
        "void loop(const Complex<float>* x, Complex<float>* out, long count) { "
        '_Pragma("omp simd") for (long i = 0; i < count; ++i) store_whole(out[i], exp<Angles::near>(x[i]) * x[i]); }'
    ),
    "complex product": _loop("x[i] * conj(y[i])", "Complex<double>"),
    "complex chain": _loop("exp(x[i]) / sin(y[i]) * x[i]", "Complex<float>"),
    "silu gradient": _loop("y[i] * sigmoid(x[i]) * (1 + x[i] * (1 - sigmoid(x[i])))", "float"),
}


def _vectorised(loops: dict[str, str], directory: Path) -> set[str]:
    """Give the loops that GCC says it vectorises.."""
    source = directory / "loops.cpp"
    namespaces = [f"namespace opwright::loop_{n} {{ {text} }}" for n, text in enumerate(loops.values())]
    source.write_text("\n".join(['#include "opwright/blend.h"', '#include "opwright/complex.h"', *namespaces, ""]))
    arguments = ("-fopt-info-vec-optimized", "-c", str(source), "-o", str(directory / "loops.o"))
    report = compile_with_gcc("native", *arguments)
    lines = {int(line) for line in re.findall(r"/loops\.cpp:(\d+):.*loop vectorized using", report)}
    return {name for line, name in enumerate(loops, start=3) if line in lines}


@pytest.mark.nightly
def test_gcc_vectorises_every_loop(tmp_path: Path) -> None:
    assert set(LOOPS) - _vectorised(LOOPS, tmp_path) == set()


def test_report_misses_a_loop_with_a_library_call(tmp_path: Path) -> None:
    loops = {"call": _loop("__builtin_lgammaf(x[i])", "float"), "tanh": LOOPS["tanh float"]}
    assert _vectorised(loops, tmp_path) == {"tanh"}
