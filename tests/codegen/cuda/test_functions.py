"""CUDA's spellings of scalar functions: NVRTC knows each, and on the processor it has its meaning."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from opwright.codegen.cpp.expression import CPP, spell_value
from opwright.codegen.cuda.functions import CUDA, REAL_FUNCTIONS
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Expression, Literal, Load, Local, apply, cast
from opwright.ir.expressions.functions import FUNCTIONS
from opwright.ir.expressions.integer import symbol
from opwright.ir.meaning.interpreter import interpret
from opwright.ir.program import Axis, Buffer, Kernel, Let, Program, Store, size_symbol
from opwright.ir.verifier import verify
from opwright.toolchain.gpu.nvrtc import compile_cuda
from opwright.toolchain.recipe import INCLUDE_DIRECTORY
from tests.cuda_on_host import run_on_host, settings_on_host

F32, F64, I32, C64 = DType.FLOAT32, DType.FLOAT64, DType.INT32, DType.COMPLEX64
# Functions whose operands are not two or one of one dtype, and those of integers or complex numbers alone.
_BITS = {name for name in FUNCTIONS if name.startswith(("bitwise", "shift"))}
_LOGICAL = {name for name in FUNCTIONS if name.startswith("logical")} | {"where"}
_OF_COMPLEX = {"real", "imag", "conj", "angle", "complex"}
REALS = [name for name in FUNCTIONS if name not in _BITS | _LOGICAL | _OF_COMPLEX]
INTEGERS = ["add", "subtract", "multiply", "negate", "minimum", "maximum", "abs", "sign", *sorted(_BITS)]
COMPLEX = ["add", "subtract", "multiply", "divide", "negate", "abs", "sqrt", "exp", "log", "sigmoid"]
COMPLEX += ["sin", "cos", "tanh", "pow", "equal", "not_equal", "real", "imag", "conj", "angle"]
CASES = {F32: REALS, F64: REALS, I32: INTEGERS, C64: COMPLEX}


def kernel_of(names: list[str], dtype: DType) -> tuple[Kernel, tuple[Buffer, ...]]:
    """x and y go in; every function of them comes out, in one kernel."""
    x, y = inputs = [f"{name}_{dtype.value}" for name in "xy"]
    extent, at = size_symbol(x, 0), (symbol("i0"),)
    shape = (extent,)
    operands: tuple[Expression, ...] = (Local(f"{x}_0", dtype), Local(f"{y}_0", dtype))
    values = {f"{name}_{dtype.value}": apply(name, *operands[: FUNCTIONS[name].arity]) for name in names}
    targets = tuple(Buffer(f"{name}_made", value.dtype, shape) for name, value in values.items())
    lets = tuple(Let(f"{name}_0", Load(name, at, dtype)) for name in inputs)
    stores = tuple(Store(f"{name}_made", at, value) for name, value in values.items())
    kernel = Kernel(f"kernel_{dtype.value}", targets, (Axis("i0", extent),), lets, stores)
    return kernel, tuple(Buffer(name, dtype, shape) for name in inputs)


def program_of(cases: dict[DType, list[str]]) -> Program:
    """A kernel for each dtype."""
    kernels, inputs = zip(*(kernel_of(names, dtype) for dtype, names in cases.items()), strict=True)
    made = tuple(target.name for kernel in kernels for target in kernel.targets)
    return Program("functions", tuple(itertools.chain(*inputs)), (), kernels, made, ())


def operands_of(dtype: DType) -> list[torch.Tensor]:
    """Pairs of usual and special values; 257 of them, so that the last pack is not full."""
    generator = torch.Generator().manual_seed(0)
    kind = getattr(torch, dtype.value)
    if dtype is I32:
        return [torch.randint(-99, 99, (257,), generator=generator, dtype=kind) for _ in "xy"]
    made = [torch.randn(257, generator=generator, dtype=kind) for _ in "xy"]
    if not dtype.is_complex:
        special = torch.tensor([0.0, -0.0, 1.0, -1.0, float("inf"), -float("inf"), float("nan"), 1e-30], dtype=kind)
        for tensor, pairs in zip(made, torch.meshgrid(special, special, indexing="ij"), strict=True):
            tensor[:64] = pairs.flatten()
    return made


def test_functions() -> None:
    program = program_of(CASES)
    verify(program)
    given = [operand for dtype in CASES for operand in operands_of(dtype)]
    with np.errstate(all="ignore"):
        expected = interpret(program, [tensor.numpy() for tensor in given])
    made = run_on_host(program, given, settings_on_host())
    names = [(name, dtype) for dtype in CASES for name in CASES[dtype]]
    for (name, dtype), actual, wanted in zip(names, made, expected, strict=True):
        tolerance = 3e-6 if dtype in (F32, C64) else 1e-13
        label = f"{name} of {dtype.value}"
        np.testing.assert_allclose(actual.numpy(), wanted, rtol=tolerance, atol=1e-30, err_msg=label, equal_nan=True)


@pytest.mark.parametrize(("dtype", "kind"), [(F32, "float"), (F64, "double")])
def test_nvrtc_knows_the_names(dtype: DType, kind: str) -> None:
    operands = ", ".join(f"{kind} {name}" for name in "xy")
    values = [apply(name, *(Local(operand, dtype) for operand in "xy"[: FUNCTIONS[name].arity])) for name in REALS]
    lines = [f"  made[{position}] = {spell_value(value, CUDA)};" for position, value in enumerate(values)]
    text = f'extern "C" __global__ void all_of_them({kind}* made, {operands}) {{\n' + "\n".join(lines) + "\n}\n"
    namespace = f'#include "opwright/cuda/kernel.h"\nnamespace opwright::emitted {{\n{text}}}\n'

    assert b"all_of_them" in compile_cuda(namespace, "compute_90", INCLUDE_DIRECTORY)


def test_a_name_is_spelled_by_the_dtype() -> None:
    x, y = Local("x", F32), Local("y", F64)
    assert spell_value(apply("exp", x), CUDA) == "expf(x)"
    assert spell_value(apply("exp", y), CUDA) == "exp(y)"
    assert spell_value(apply("exp", x), CPP) == "exp(x)"
    assert spell_value(apply("round", x), CUDA) == "rintf(x)"
    assert spell_value(apply("add", cast(x, F64), Literal(float("inf"), F64)), CUDA) == (
        "static_cast<double>(x) + infinity<double>()"
    )
    assert spell_value(Literal(float("nan"), F32), CUDA) == "not_a_number<float>()"


def test_every_function_of_reals_that_cpp_calls_has_a_name() -> None:
    called = {name for name in REALS if CPP.function(name, F32)}
    missing = {name for name in called if not CUDA.function(name, F32) or not CUDA.function(name, F64)}
    assert called >= REAL_FUNCTIONS.keys()
    assert not missing
