"""Guards in fewer conditions that mean the same."""

import random
from itertools import product

import pytest

from opwright.ir.expressions.integer import Condition, greatest, holds, integer, symbol, symbols_of
from opwright.ir.relations.relations import relations
from tests.suite.nights import mostly_at_night

a, b, c = symbol("a"), symbol("b"), symbol("c")
SIZES = range(10)


def condition(left, relation, right):
    return Condition(relation, integer(left), integer(right))


def of(*guards):
    """Guards on sizes of which those that occur are at least two."""
    names = sorted(set().union(*(symbols_of(side) for guard in guards for side in (guard.left, guard.right))))
    return [*(condition(symbol(name), ">=", 2) for name in names), *guards]


extent = a + 3 - b  # a convolution's
third = (a + 2) // 3  # a chunk's
CASES = [
    ("bounds", of(condition(a, ">=", 2), condition(a, "!=", 1), condition(0, "<", a)), ["a >= 2"]),
    ("same", of(condition(a, "==", b)), ["a >= 2", "b == a"]),
    ("chunks", of(condition(b, "==", a - 2 * b), condition(b, "==", (a + 2) // 3)), ["b >= 2", "a == 3*b"]),
    ("uneven", of(condition(a, "==", 3 * b), condition((a + b - 1) // b, "==", 3)), ["b >= 2", "a == 3*b"]),
    ("greatest", of(condition(greatest(integer(1), a), "!=", greatest(a, b))), ["a >= 2", "b >= 2", "a != max(a, b)"]),
    ("remainder", of(condition(a, "==", 4 * b), condition((a + 1) % 4, "==", 1)), ["b >= 2", "a == 4*b"]),
    ("sum", of(condition(a + b, "==", c), condition(c, ">", 3)), ["a >= 2", "b >= 2", "c == a + b"]),
    ("chain", of(condition(a, "==", 2 * b), condition(b, "==", c)), ["b >= 2", "a == 2*b", "c == b"]),
    ("multiple", of(condition(a % 4, "==", 0), condition(a // 4, "!=", 1)), ["a >= 8", "(a % 4) == 0"]),
    ("multiples", of(condition(a % 4, "==", 0), condition(a, "==", 4 * (a // 4))), ["a >= 4", "(a % 4) == 0"]),
    ("thirds", of(condition(a - 2 * third, "==", third)), ["a >= 3", "(a % 3) == 0"]),
    ("third", of(condition(a - 2 * third, "==", third), condition(b, "==", third)), ["b >= 2", "a == 3*b"]),
    ("kept", of(condition(a * b, "<=", 60)), ["a >= 2", "b >= 2", "a*b <= 60"]),
    ("turned", of(condition(3, "<", a), condition(1, "<", a)), ["a >= 4"]),
    ("repeated", of(condition(a, ">", b), condition(a, ">", b)), ["b >= 2", "a > b"]),
    ("square", of(condition(a * a, "==", b * b)), ["a >= 2", "b >= 2", "a*a == b*b"]),
    ("negative", of(condition((-a + 1) // 3, "!=", 0)), ["a >= 2"]),
    ("impossible", of(condition(a, "==", b), condition(a, "!=", b)), ["a >= 2", "b == a", "0 >= 1"]),
    ("extent", of(condition(extent, ">", 0), condition(extent, "!=", 1)), ["a >= 2", "b >= 2", "a + 1 >= b"]),
    (
        "elements",
        of(condition(extent, ">", 1), condition(c * greatest(integer(1), extent), "==", c * extent)),
        ["a >= 2", "b >= 2", "c >= 2", "a + 1 >= b"],
    ),
    ("halved", of(condition((a - b) // 2, ">=", 0), condition((a - b) // 2 + 2, "!=", 1)), ["b >= 2", "a >= b"]),
    ("pooled", of(condition(a // 2, "!=", 1)), ["a >= 4"]),
    ("no bound", [condition(a, "==", b), condition(a, ">=", 0)], ["a == b"]),
]  # fmt: skip


@pytest.mark.parametrize(("guards", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_guards_become_fewer(guards, expected):
    assert [str(each) for each in relations(guards).guards] == expected
    assert_same(guards)


def test_equalities_are_apart():
    found = relations(of(condition(b, "==", a - 2 * b), condition(c, ">", b)))
    assert {name: str(value) for name, value in found.equal.items()} == {"a": "3*b"}
    assert [str(each) for each in found.beyond_least] == ["b < c"]


def assert_same(guards):
    fewer = relations(guards).guards
    for sizes in product(SIZES, repeat=3):
        values = dict(zip("abc", sizes, strict=True))
        before, after = (all(holds(each, values) for each in some) for some in (guards, fewer))
        assert before == after, (values, [*map(str, guards)], [*map(str, fewer)])


def drawn(draw, depth):
    """An expression of sizes, with divisions by numbers."""

    def again():
        return drawn(draw, depth - 1)

    match draw.randrange(9 if depth else 4):
        case 0 | 1:
            return draw.choice([a, b, c])
        case 2:
            return integer(draw.randrange(-3, 7))
        case 3:
            return draw.choice([a, b, c]) * draw.randrange(1, 5)
        case 4:
            return again() + again()
        case 5:
            return again() - again()
        case 6:
            return again() * again()
        case 7:
            return draw.choice([again() // draw.randrange(2, 5), greatest(again(), again())])
        case _:
            return again() % draw.randrange(2, 5)


@pytest.mark.parametrize("half", [integer(2), b, b + c, greatest(b, c)])
def test_a_quotient_that_is_known_determines_its_size(half):
    guards = [condition(a % 2, "==", integer(0)), condition(a // 2, "==", half)]
    found = relations(guards)
    assert set(found.equal) <= {"a", "b", "c"}
    assert_same(guards)


@pytest.mark.parametrize("seed", mostly_at_night(range(150), by_day=40))
def test_they_mean_the_same_for_all_sizes(seed):
    draw = random.Random(seed)
    least = draw.randrange(3)
    relation = ["==", "==", "!=", "<", "<=", ">", ">="]
    guards = [condition(size, ">=", least) for size in (a, b, c) if least]
    guards += [condition(drawn(draw, 2), draw.choice(relation), drawn(draw, 2)) for _ in range(draw.randrange(1, 6))]
    assert_same(guards)
