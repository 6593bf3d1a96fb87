"""Scalar expressions in C++: spellings, literals to the last bit, parentheses, and sizes as Python computes them."""

from __future__ import annotations

import ctypes
import math
import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opwright
from opwright.codegen.cpp.expression import (
    COMPLEX_FUNCTIONS,
    CPP_OPERATORS,
    CPP_PREDICATES,
    VMATH_FUNCTIONS,
    spell_literal,
    spell_value,
)
from opwright.codegen.cpp.size import spell_condition, spell_size
from opwright.errors import InternalError
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Apply, Cast, Expression, Literal, Load, Local, apply
from opwright.ir.expressions.functions import FUNCTIONS
from opwright.ir.expressions.integer import RELATIONS, Condition, Integer, evaluate, greatest, holds, integer, symbol

HEADERS = Path(opwright.__file__).parent / "include"
F32, F64, I64, BOOL = DType.FLOAT32, DType.FLOAT64, DType.INT64, DType.BOOL
F, S, Z = Local("f", F32), Local("s", DType.INT8), Local("z", DType.COMPLEX64)
A, B, P, Q = Local("a", F64), Local("b", F64), Local("p", BOOL), Local("q", BOOL)


def test_every_function_has_a_spelling() -> None:
    assert CPP_OPERATORS.keys() | CPP_PREDICATES.keys() | VMATH_FUNCTIONS | COMPLEX_FUNCTIONS == FUNCTIONS.keys()
    assert not CPP_OPERATORS.keys() & VMATH_FUNCTIONS


SPELLINGS: dict[str, Expression] = {
    "a + b * a": apply("add", A, apply("multiply", B, A)),
    "(a + b) * a": apply("multiply", apply("add", A, B), A),
    "a - (b - a)": apply("subtract", A, apply("subtract", B, A)),
    "a - b - a": apply("subtract", apply("subtract", A, B), A),
    "a / (b * a)": apply("divide", A, apply("multiply", B, A)),
    "1 / (a * b)": apply("reciprocal", apply("multiply", A, B)),
    "1 / (1 / a)": apply("reciprocal", apply("reciprocal", A)),
    "-(-a)": apply("negate", apply("negate", A)),
    "-(-0.5)": apply("negate", Literal(-0.5, F64)),
    "a - -0.5": apply("subtract", A, Literal(-0.5, F64)),
    "-a * b": apply("multiply", apply("negate", A), B),
    "-(a * b)": apply("negate", apply("multiply", A, B)),
    "!(!p)": apply("logical_not", apply("logical_not", P)),
    "!(a < b)": apply("logical_not", apply("less", A, B)),
    "a < b & p": apply("logical_and", apply("less", A, B), P),
    "(p | q) & p": apply("logical_and", apply("logical_or", P, Q), P),
    "(p ? a : b) ? a : b": Apply("where", (Apply("where", (P, A, B), F64), A, B), F64),
    "p ? a : (q ? a : b)": apply("where", P, A, apply("where", Q, A, B)),
    "(p ? a : b) + a": apply("add", apply("where", P, A, B), A),
    "min(a, p ? a : b)": apply("minimum", A, apply("where", P, A, B)),
    "to_bfloat16(f)": Cast(F, DType.BFLOAT16),
    "to_float(h)": Cast(Local("h", DType.FLOAT16), F32),
    "to_float16(0.1f)": Literal(0.1, DType.FLOAT16),
    "Complex<float>(2.0f, -1.0f) * z": apply("multiply", Literal(2 - 1j, DType.COMPLEX64), Z),
    "z / Complex<float>(0.1f, 0.0f)": apply("divide", Z, Literal(0.1, DType.COMPLEX64)),
    "abs(conj(z))": apply("abs", apply("conj", Z)),
    "complex(f, f)": apply("complex", F, F),
    "static_cast<double>(real(z))": Cast(Z, F64),
    "z != Complex<float>(0)": Cast(Z, BOOL),
    "static_cast<Complex<double>>(z)": Cast(Z, DType.COMPLEX128),
    "static_cast<int8_t>(s + int8_t(3))": apply("add", S, Literal(3, DType.INT8)),
    "static_cast<int8_t>(static_cast<int8_t>(s * s) - s)": apply("subtract", apply("multiply", S, S), S),
    "static_cast<int8_t>(truncated<int32_t>(f))": Cast(F, DType.INT8),
    "static_cast<uint8_t>(truncated<int64_t>(f))": Cast(F, DType.UINT8),
    "static_cast<float>(a + b)": Cast(apply("add", A, B), F32),
    "a < b != 0": Cast(apply("less", A, B), BOOL),
    "(p ? 1.0 : 0.0) * a": apply("multiply", Cast(P, F64), A),
    "to_float16(p | q ? 1.0f : 0.0f)": Cast(apply("logical_or", P, Q), DType.FLOAT16),
    "Complex<float>(p ? 1.0f : 0.0f)": Cast(P, DType.COMPLEX64),
    "static_cast<int64_t>(p)": Cast(P, I64),
    "tanh(a + b)": apply("tanh", apply("add", A, B)),
}


@pytest.mark.parametrize(("text", "expression"), SPELLINGS.items(), ids=SPELLINGS)
def test_spelling(text: str, expression: Expression) -> None:
    assert spell_value(expression) == text


def test_a_load_must_have_a_name() -> None:
    with pytest.raises(InternalError, match="a load of 'x' was not bound"):
        spell_value(Load("x", (), F32))


def test_a_function_without_spelling() -> None:
    with pytest.raises(InternalError, match="no C\\+\\+ spelling of 'gamma'"):
        spell_value(Apply("gamma", (A,), F64))


def read_literal(text: str) -> float:
    """A spelled number as Python reads it."""
    for inside, value in (
        ("-__builtin_nan", -math.nan),
        ("__builtin_nan", math.nan),
        ("-__builtin_inf", -math.inf),
        ("__builtin_inf", math.inf),
    ):
        if text.startswith(inside):
            return value
    return float(text.removesuffix("f"))


def bits(value: float) -> bytes:
    return b"nan" if math.isnan(value) else struct.pack("d", value)


@given(st.floats())
def test_doubles_read_back_as_themselves(value: float) -> None:
    assert bits(read_literal(spell_literal(value, F64))) == bits(value)


@given(st.floats(width=32))
def test_floats_read_back_as_themselves(value: float) -> None:
    text = spell_literal(value, F32)
    assert text.endswith(("f", ")"))
    assert bits(float(np.float32(read_literal(text)))) == bits(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_are_rounded_to_floats_once(value: float) -> None:
    with np.errstate(over="ignore"):
        assert bits(float(np.float32(read_literal(spell_literal(value, F32))))) == bits(float(np.float32(value)))


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (1, F64, "1.0"),
        (1, F32, "1.0f"),
        (0.1, F32, "0.1f"),
        (-0.0, F32, "-0.0f"),
        (1e30, F32, "1e+30f"),
        (16777216.0, F32, "16777216.0f"),
        (math.inf, F64, "__builtin_inf()"),
        (-math.inf, F32, "-__builtin_inff()"),
        (math.nan, F32, '__builtin_nanf("")'),
        (True, BOOL, "true"),
        (-3, I64, "int64_t(-3)"),
        (-(2**63), I64, "INT64_MIN"),
        (2, DType.INT32, "2"),
    ],
)
def test_literal(value: float, dtype: DType, text: str) -> None:
    assert spell_literal(value, dtype) == text


def compile_functions(directory: Path, signature: str, bodies: Sequence[str]) -> list[Callable[..., float]]:
    """Compile `f0`, `f1`, … that return an expression each."""
    source, library = directory / "functions.cpp", directory / "functions.so"
    functions = [
        f'extern "C" {signature.format(name=f"f{position}")} {{ return {body}; }}'
        for position, body in enumerate(bodies)
    ]
    source.write_text("\n".join(['#include "opwright/kernel.h"', "namespace opwright {", *functions, "}"]))
    command = [
        "g++",
        "-std=c++20",
        "-O1",
        "-ffp-contract=off",
        "-fwrapv",
        "-shared",
        "-fPIC",
        f"-I{HEADERS}",
        "-Wno-parentheses",
    ]
    subprocess.run([*command, str(source), "-o", str(library)], check=True)
    loaded = ctypes.CDLL(str(library), mode=ctypes.RTLD_LOCAL | 1)
    return [getattr(loaded, f"f{position}") for position in range(len(bodies))]


ON_NUMBERS = ("add", "subtract", "multiply", "divide", "minimum", "maximum", "negate", "abs", "reciprocal", "floor")
COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
ON_TRUTHS = ("logical_and", "logical_or", "logical_xor", "logical_not")


def random_number(random: Random, depth: int) -> Expression:
    if depth == 0 or random.random() < 0.1:
        return random.choice([A, B, Literal(-0.5, F64), Literal(2, F64)])
    if random.random() < 0.2:
        return apply("where", random_truth(random, depth - 1), *(random_number(random, depth - 1) for _ in range(2)))
    if random.random() < 0.1:
        return Cast(random_truth(random, depth - 1), F64)
    name = random.choice(ON_NUMBERS)
    return apply(name, *(random_number(random, depth - 1) for _ in range(FUNCTIONS[name].arity)))


def random_truth(random: Random, depth: int) -> Expression:
    if depth == 0 or random.random() < 0.1:
        return random.choice([Literal(True, BOOL), apply("less", A, B)])
    if random.random() < 0.5:
        return apply(random.choice(COMPARISONS), random_number(random, depth - 1), random_number(random, depth - 1))
    if random.random() < 0.1:
        return Cast(random_number(random, depth - 1), BOOL)
    name = random.choice(ON_TRUTHS)
    return apply(name, *(random_truth(random, depth - 1) for _ in range(FUNCTIONS[name].arity)))


def meaning(expression: Expression, values: dict[str, float]) -> np.generic:
    """What the table of functions says an expression is."""
    match expression:
        case Local(name):
            return np.float64(values[name])
        case Literal(value, dtype):
            return np.dtype(dtype.value).type(value)
        case Cast(operand, dtype):
            return meaning(operand, values).astype(dtype.value)
        case Apply(function, operands):
            return np.asarray(FUNCTIONS[function].meaning(*(meaning(o, values) for o in operands)))[()]
        case _:
            raise AssertionError(expression)


def test_random_expressions_compute_what_they_mean(needs_torch_library: None, tmp_path: Path) -> None:
    random = Random(0)
    expressions = [random_number(random, 4) for _ in range(200)]
    functions = compile_functions(tmp_path, "double {name}(double a, double b)", [*map(spell_value, expressions)])
    for expression, function in zip(expressions, functions, strict=True):
        function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * 2
        for a, b in ((1.5, -0.25), (-3.0, 2.0), (0.0, 0.0), (math.inf, -1.0)):
            with np.errstate(all="ignore"):
                expected = float(meaning(expression, {"a": a, "b": b}))
            actual = function(a, b)
            assert actual == expected or (math.isnan(actual) and math.isnan(expected)), spell_value(expression)


M, N = symbol("m"), symbol("n")


def random_size(random: Random, depth: int) -> Integer:
    if depth == 0:
        return random.choice([M, N, integer(random.randint(-4, 4))])
    left, right = random_size(random, depth - 1), random_size(random, depth - 1)
    match random.choice("+-*/%m"):
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left // (right * right + 1)
        case "%":
            return left % (right * right + 1)
        case _:
            return greatest(left, right)


def test_sizes_compute_as_in_python(needs_torch_library: None, tmp_path: Path) -> None:
    random = Random(1)
    sizes = [random_size(random, 3) for _ in range(150)]
    conditions = [
        Condition(random.choice([*RELATIONS]), random_size(random, 2), random_size(random, 2)) for _ in range(100)
    ]
    bodies = [*map(spell_size, sizes), *map(spell_condition, conditions)]
    functions = compile_functions(tmp_path, "Size {name}(Size m, Size n)", bodies)
    expected = [lambda v, s=size: evaluate(s, v) for size in sizes]
    expected += [lambda v, c=condition: int(holds(c, v)) for condition in conditions]
    for body, function, value in zip(bodies, functions, expected, strict=True):
        function.restype, function.argtypes = ctypes.c_int64, [ctypes.c_int64] * 2
        for m, n in ((1, 1), (7, 3), (2, 9), (640, 17)):
            assert function(m, n) == value({"m": m, "n": n}), body


@pytest.fixture(scope="module")
def needs_torch_library() -> None:
    """kernel.h asks torch for its dtypes while a library is loaded."""
    import torch

    ctypes.CDLL(str(Path(torch.__file__).parent / "lib/libtorch_cpu.so"), mode=ctypes.RTLD_GLOBAL)
