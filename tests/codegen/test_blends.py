"""Which choices become blends by a mask."""

from opwright.codegen.cpp.loops.blends import is_mask, with_blends
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Apply, Literal, Load, Local
from opwright.ir.expressions.integer import symbol
from opwright.ir.program import Axis, Kernel, Let, Store

ROW, COLUMN = symbol("i"), symbol("j")
X = Local("x", DType.FLOAT32)
ZERO = Literal(0.0, DType.FLOAT32)


def kernel(condition, row_axes=0):
    lets = (
        Let("x", Load("x", (ROW, COLUMN), DType.FLOAT32)),
        Let("valid", Load("valid", (ROW,), DType.BOOL)),
        Let("causal", Load("causal", (ROW, COLUMN), DType.BOOL)),
    )
    value = Apply("where", (condition, X, ZERO), DType.FLOAT32)
    axes = (Axis("i", symbol("rows")), Axis("j", symbol("columns")))
    return Kernel("chosen", (), axes, lets, (Store("out", (ROW, COLUMN), value),), row_axes=row_axes)


def written(condition, row_axes=0):
    rewritten = with_blends(kernel(condition, row_axes))
    return [let.name for let in rewritten.lets if is_mask(let)], rewritten.stores[0].value


VALID, CAUSAL = Local("valid", DType.BOOL), Local("causal", DType.BOOL)
MASK = Local("valid_mask", DType.INT32)


def test_a_condition_of_the_row_is_a_mask():
    for row_axes in (0, 1):
        assert written(VALID, row_axes) == (["valid_mask"], Apply("blend", (MASK, X, ZERO), DType.FLOAT32))


def test_a_condition_of_each_point_stays():
    assert written(CAUSAL) == ([], Apply("where", (CAUSAL, X, ZERO), DType.FLOAT32))


def test_a_row_of_both_axes_has_no_condition_of_its_own():
    assert written(VALID, 2) == ([], Apply("where", (VALID, X, ZERO), DType.FLOAT32))


def test_a_condition_of_both_kinds_is_taken_apart():
    inner = Apply("where", (CAUSAL, X, ZERO), DType.FLOAT32)
    for both in ((VALID, CAUSAL), (CAUSAL, VALID)):
        condition = Apply("logical_and", both, DType.BOOL)
        assert written(condition) == (["valid_mask"], Apply("blend", (MASK, inner, ZERO), DType.FLOAT32))
