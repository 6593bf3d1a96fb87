"""Casts between the dtypes of elements: GCC converts vectors of them, not one element after the other."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import pytest

from opwright.codegen.cpp.expression import CPP_TYPES, spell_value
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Cast, Local
from tests.include.vmath_functions import compile_with_gcc

REAL = [dtype for dtype in DType if not dtype.is_complex]
ONE_BY_ONE = re.compile(r"\tv?cvt(u?si2s[sd]|s[sd]2u?si|ss2sd|sd2ss)")
HEADERS = ("arithmetic.h", "half.h")


def loop(number: int, given: DType, made: DType) -> str:
    kinds = [CPP_TYPES[dtype] if dtype is not DType.BOOL else "unsigned char" for dtype in (given, made)]
    loaded = "x[j] != 0" if given is DType.BOOL else "x[j]"
    return (
        f"void loop_{number}(const {kinds[0]}* __restrict x, {kinds[1]}* __restrict out) {{\n"  # no remainder
        f'_Pragma("omp simd") for (long j = 0; j < 64; ++j) {{ const {CPP_TYPES[given]} value = {loaded}; '
        f"out[j] = {spell_value(Cast(Local('value', given), made))}; }} }}"
    )


def _is_spelled(given: DType, made: DType) -> bool:
    """Half types are computed with as float32."""
    return not (given.is_half or made.is_half) or DType.FLOAT32 in (given, made) or given is DType.BOOL


# AVX2 has no instruction for vectors of int64.
ONE_BY_ONE_IN: dict[str, set[str]] = {
    "x86-64-v3": {"int64 to float32", "int64 to float64"},
    "x86-64-v4": set(),
}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the instructions are those of x86")
@pytest.mark.parametrize("target", ONE_BY_ONE_IN)
def test_no_cast_goes_one_by_one(target: str, tmp_path: Path) -> None:
    pairs = [(given, made) for given in REAL for made in REAL if given is not made and _is_spelled(given, made)]
    source, made = tmp_path / "casts.cpp", tmp_path / "casts.s"
    loops = (loop(number, *pair) for number, pair in enumerate(pairs))
    includes = (f'#include "opwright/{header}"' for header in HEADERS)
    source.write_text("\n".join([*includes, "namespace opwright {", *loops, "}", ""]))
    compile_with_gcc("native", f"-march={target}", "-S", str(source), "-o", str(made))
    slow, current = set[str](), ""
    for line in made.read_text().splitlines():
        if found := re.match(r"_ZN8opwright\d+loop_(\d+)", line):
            current = " to ".join(dtype.value for dtype in pairs[int(found[1])])
        if ONE_BY_ONE.match(line):
            slow.add(current)
    assert slow == ONE_BY_ONE_IN[target]
