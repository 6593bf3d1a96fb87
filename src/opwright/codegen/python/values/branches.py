"""Keep exponentials from overflowing in the branch of a `where` that is not taken."""

from __future__ import annotations

from opwright.ir.expressions.expression import Apply, Expression, Literal, rewrite_children

OVERFLOWING = frozenset({"exp", "exp2", "expm1", "sinh", "cosh"})

# For each comparison of x with a bound: the function that keeps x within it where the comparison holds, and elsewhere.
_KEPT = {
    "greater": ("at_least", "at_most"),
    "greater_equal": ("at_least", "at_most"),
    "less": ("at_most", "at_least"),
    "less_equal": ("at_most", "at_least"),
}


def shelter(expression: Expression) -> Expression:
    """Clamp the operands of exponentials by the condition of their branch.

    Before: where(x > 0, x, expm1(x))
    After:  where(x > 0, x, expm1(at_most(x, 0)))

    The value is the same. Its derivative, which autograd takes, is not NaN (0·∞) where the branch is not taken.
    """
    match expression:
        case Apply("where", (Apply(relation, (x, Literal() as bound)) as condition, a, b), dtype) if relation in _KEPT:
            holds, fails = _KEPT[relation]
            a = _bounded(a, x, Apply(holds, (x, bound), x.dtype))
            b = _bounded(b, x, Apply(fails, (x, bound), x.dtype))
            return Apply("where", (shelter(condition), shelter(a), shelter(b)), dtype)
        case _:
            return rewrite_children(expression, shelter)


def _bounded(expression: Expression, x: Expression, kept: Expression) -> Expression:
    if isinstance(expression, Apply) and expression.function in OVERFLOWING:
        return rewrite_children(expression, lambda operand: _replaced(operand, x, kept))
    return rewrite_children(expression, lambda child: _bounded(child, x, kept))


def _replaced(expression: Expression, x: Expression, by: Expression) -> Expression:
    return by if expression == x else rewrite_children(expression, lambda child: _replaced(child, x, by))
