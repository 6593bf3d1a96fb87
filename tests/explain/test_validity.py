"""Guards in fewer conditions that mean the same."""

from itertools import product

import pytest

from opwright.explain.validity import validity
from opwright.ir.expressions.integer import Condition, evaluate, greatest, holds, integer, symbol, symbols_of

a, b, c = symbol("a"), symbol("b"), symbol("c")
SIZES = range(2, 14)


def condition(left, relation, right):
    return Condition(relation, integer(left), integer(right))


CASES = [
    ("bounds", [condition(a, ">=", 2), condition(a, "!=", 1), condition(0, "<", a)], {}, []),
    ("same", [condition(a, "==", b)], {"a": "b"}, []),
    ("chunks", [condition(b, "==", a - 2 * b), condition(b, "==", (a + 2) // 3)], {"a": "3*b"}, []),
    ("uneven", [condition(a, "==", 3 * b), condition((a + b - 1) // b, "==", 3)], {"a": "3*b"}, []),
    ("greatest", [condition(greatest(integer(1), a), "!=", greatest(a, b))], {}, ["a != max(a, b)"]),
    ("remainder", [condition(a, "==", 4 * b), condition((a + 1) % 4, "==", 1)], {"a": "4*b"}, []),
    ("sum", [condition(a + b, "==", c), condition(c, ">", 3)], {"c": "a + b"}, []),
    ("chain", [condition(a, "==", 2 * b), condition(b, "==", c)], {"a": "2*c", "b": "c"}, []),
    ("kept", [condition(a * b, "<=", 60), condition(a % 4, "==", 0)], {}, ["a*b <= 60", "(a % 4) == 0"]),
    ("turned", [condition(3, "<", a), condition(1, "<", a)], {}, ["3 < a"]),
    ("repeated", [condition(a, ">", b), condition(a, ">", b)], {}, ["a > b"]),
    ("square", [condition(a * a, "==", b * b)], {}, ["a*a == b*b"]),
    ("negative", [condition((-a + 1) // 3, "!=", 0)], {}, ["((1 - a) // 3) != 0"]),
    ("impossible", [condition(a, "==", b), condition(a, "!=", b)], {"a": "b"}, ["b != b"]),
]


@pytest.mark.parametrize(("guards", "equal", "conditions"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_guards_become_fewer(guards, equal, conditions):
    found = validity(guards)
    assert {name: str(value) for name, value in found.equal.items()} == equal
    assert [str(each) for each in found.conditions] == conditions


@pytest.mark.parametrize("guards", [case[1] for case in CASES], ids=[case[0] for case in CASES])
def test_they_mean_the_same_for_all_sizes(guards):
    found = validity(guards)
    names = sorted(set().union(*(symbols_of(side) for guard in guards for side in (guard.left, guard.right))))
    for sizes in product(SIZES, repeat=len(names)):
        values = dict(zip(names, sizes, strict=True))
        solved = all(values[name] == evaluate(value, values) for name, value in found.equal.items())
        shown = solved and all(holds(each, values) for each in found.conditions)
        assert shown == all(holds(guard, values) for guard in guards), values
