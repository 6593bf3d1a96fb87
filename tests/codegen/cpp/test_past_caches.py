"""Which results go past the caches, and that all of them arrive where kernels write them so at every size."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from opwright.codegen.cpp.loops.work import quick_stores
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Apply, Cast, Expression, Load, Local, apply
from opwright.ir.expressions.integer import symbol
from opwright.ir.program import Axis, Kernel, Let, Reduce, Store
from tests.quick_compiler import CHOSEN, OPTIMIZING_NOTHING, chosen_compiler, quick_compiler
from tests.suite.nights import mostly_at_night

ROOT = Path(__file__).parents[3]
ROW, COLUMN = symbol("i"), symbol("j")
AXES = (Axis("i", symbol("rows")), Axis("j", symbol("columns")))
X, TOTAL, OF_ROW = (Local(name, DType.FLOAT32) for name in ("x", "total", "of_row"))


def quick(value: Expression, *, row_axes: int = 0, reduced: Expression = X) -> bool:
    lets = (
        Let("x", Load("x", (ROW, COLUMN), DType.FLOAT32)),
        Let("of_row", Load("of_row", (ROW,), DType.FLOAT32)),
        *((Reduce("total", "sum", reduced),) if row_axes else ()),
    )
    store = Store("out", (ROW, COLUMN), value)
    return quick_stores(Kernel("kernel", (), AXES, lets, (store,), row_axes=row_axes)) == {0}


def erf_of(value: Expression) -> Expression:
    return apply("erf", value)


def test_arithmetic_and_one_exponential_are_quick() -> None:
    assert quick(apply("multiply", X, X))
    assert quick(apply("multiply", apply("sigmoid", X), X))


def test_an_error_function_is_not() -> None:
    assert not quick(erf_of(X))


def test_what_is_computed_once_for_a_row_does_not_count() -> None:
    assert quick(apply("multiply", X, erf_of(OF_ROW)))


def test_each_pass_counts_for_itself() -> None:
    assert quick(apply("divide", X, TOTAL), row_axes=1, reduced=erf_of(X))
    assert not quick(apply("divide", erf_of(X), TOTAL), row_axes=1)


def test_a_pass_that_reduces_has_none() -> None:
    assert not quick(apply("multiply", X, X), row_axes=1)


def test_half_types_are_converted() -> None:
    halved = Cast(apply("multiply", apply("sigmoid", X), X), DType.BFLOAT16)
    assert not quick(halved)


def test_a_complex_function_is_not() -> None:
    number = Apply("complex", (X, X), DType.COMPLEX64)
    assert quick(number)
    assert not quick(Apply("exp", (number,), DType.COMPLEX64))


SUITES = (
    "operator/test_reductions.py::test_nan_and_infinities_are_where_eager_has_them",
    "operator/test_reductions.py",
    "operator/test_layouts.py",
    "test_random_programs.py",
)


@pytest.mark.parametrize("suite", mostly_at_night(SUITES, by_day=0))
def test_results_are_the_same(suite: str, tmp_path: Path) -> None:
    """With kernels for which no result is too small."""
    always = f"{chosen_compiler() or 'g++'} -DOPWRIGHT_LEAST_STREAMED_BYTES=0"
    built_by = dict.fromkeys(("CXX", CHOSEN), quick_compiler(OPTIMIZING_NOTHING, always))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/{suite}"]
    environment = {**os.environ, **built_by, "OPWRIGHT_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
