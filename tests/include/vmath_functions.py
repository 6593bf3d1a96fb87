"""The functions of opwright/vmath.h, what they must equal in torch, and how the tests compile them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import opwright
from opwright.settings import Settings
from opwright.toolchain.compiler import find_compiler
from tests.keeping_compiler import keeping_compiler

INCLUDE = Path(opwright.__file__).parent / "include"
FLAGS = [
    *("-std=c++17", "-O3", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off"),
    *("-mprefer-vector-width=512", "-Wall", "-Wextra", "-Werror"),
]
TARGETS = {"native": ["-march=native"], "baseline": []}  # the second has no FMA on x86

UNARY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "abs": torch.abs,
    "acos": torch.acos,
    "acosh": torch.acosh,
    "asin": torch.asin,
    "asinh": torch.asinh,
    "atan": torch.atan,
    "atanh": torch.atanh,
    "ceil": torch.ceil,
    "cos": torch.cos,
    "cosh": torch.cosh,
    "erf": torch.erf,
    "erfc": torch.erfc,
    "exp": torch.exp,
    "exp2": torch.exp2,
    "expm1": torch.expm1,
    "floor": torch.floor,
    "log": torch.log,
    "log10": torch.log10,
    "log1p": torch.log1p,
    "log2": torch.log2,
    "round": torch.round,
    "rsqrt": torch.rsqrt,
    "sigmoid": torch.sigmoid,
    "sign": torch.sign,
    "sin": torch.sin,
    "sinh": torch.sinh,
    "sqrt": torch.sqrt,
    "tan": torch.tan,
    "tanh": torch.tanh,
    "trunc": torch.trunc,
}
BINARY: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "atan2": torch.atan2,
    "copysign": torch.copysign,
    "fmod": torch.fmod,
    "hypot": torch.hypot,
    "max": torch.maximum,
    "min": torch.minimum,
    "pow": torch.pow,
    "remainder": torch.remainder,
}
INLINE_DOUBLE = [
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "erf", "exp", "exp2", "expm1", "log", "log10", "log1p",
    "log2", "sigmoid", "sinh", "tanh",
]  # fmt: skip
INLINE_DOUBLE_BINARY = ["atan2", "pow"]
EXACT = {"abs", "ceil", "copysign", "floor", "fmod", "max", "min", "round", "sign", "trunc"}


def compile_with_gcc(target: str, *arguments: str) -> str:
    """Compile as emitted kernels are, warnings being errors; give what was printed."""
    compiler = shutil.which("g++") or pytest.skip("no g++ on this machine")
    known = find_compiler(replace(Settings.from_environment(), compiler=compiler)).flags
    gathers = [flag for flag in known if flag.startswith("-mtune-ctrl=")]
    command = [keeping_compiler("", compiler), *FLAGS, *gathers, *TARGETS[target], "-I", str(INCLUDE), *arguments]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr
