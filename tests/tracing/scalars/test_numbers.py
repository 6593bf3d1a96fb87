"""Python numbers that change: for which values a trace holds, and what needs their values."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from opwright.errors import NumberNeeded
from opwright.ir.program import Call
from opwright.tracing.interface.specs import NumberSpec, TensorSpec
from opwright.tracing.scalars.type_questions import asks_for_types
from opwright.tracing.trace import trace
from tests.derived import lowered

LEAST, MOST = -(2**63), 2**63 - 1


def traced(reference, value, dtype=torch.float32):
    return trace(reference, [TensorSpec("x", dtype, (4, 6)), NumberSpec("k", value)])[0]


def range_of(graph):
    """The least and the greatest number that all guards let through."""
    low, high = LEAST, MOST
    for guard in graph.number_guards:
        assert guard.relation in (">", ">=", "<", "<=")
        step = 0 if "=" in guard.relation else 1
        if guard.relation.startswith(">"):
            low = max(low, guard.bound + step)
        else:
            high = min(high, guard.bound - step)
    return low, high


RANGES = {
    "anything": (lambda x, k: x * k, 5, (LEAST, MOST)),
    "a sum": (lambda x, k: x * (k + 3), 5, (LEAST, MOST - 3)),
    "a product": (lambda x, k: x * (2 * k + 1), 5, (-(2**62), 2**62 - 1)),
    "a negative": (lambda x, k: x * -k, 5, (LEAST + 1, MOST)),
    "a magnitude": (lambda x, k: x * abs(k), -5, (LEAST + 1, MOST)),
    "a square": (lambda x, k: x * (k * k), 5, (-3037000499, 3037000499)),
    "a floored quotient": (lambda x, k: x * (k // 3), 5, (LEAST, MOST)),
    "a remainder": (lambda x, k: x * (k % -7), 5, (LEAST, MOST)),
    "a power of two": (lambda x, k: x * 2**k, 5, (0, 62)),
    "a larger one": (lambda x, k: x * torch.sym_max(k, 3), 5, (LEAST, MOST)),
    "a quotient": (lambda x, k: x * (1 / k), 5, (1, 2**53)),
    "a quotient, negative": (lambda x, k: x * (1 / k), -5, (-(2**53), -1)),
    "half": (lambda x, k: x * (k / 2), 5, (-(2**53), 2**53)),
    "an order": (lambda x, k: x * k if k > 2 else x, 5, (3, MOST)),
    "two orders": (lambda x, k: x * k if 0 < k < 100 else x, 5, (1, 99)),
    "an order of what is computed": (lambda x, k: x + 1 if 3 * k + 1 > 7 else x * k, 5, (3, (MOST - 1) // 3)),
    "a power": (lambda x, k: x / (1 - 0.5**k), 5, (-1023, MOST)),
    "a root": (lambda x, k: x * (1 - 0.999**k) ** 0.5, 2, (1, MOST)),
}


@pytest.mark.parametrize(("reference", "value", "expected"), RANGES.values(), ids=RANGES.keys())
def test_a_trace_holds_as_far_as_python_computes_the_same(reference, value, expected):
    assert range_of(traced(reference, value)) == expected


def test_an_integer_stays_where_the_dtypes_beside_it_hold_it():
    for dtype, expected in (
        (torch.int8, (-128, 127)),
        (torch.int32, (-(2**31), 2**31 - 1)),
        (torch.float16, (-65504, 65504)),
    ):
        assert range_of(traced(lambda x, k: x + k, 5, dtype)) == expected


FLOATS = {
    "a fill": (lambda x, k: torch.full_like(x, k), 65504),
    "its negative": (lambda x, k: x.masked_fill(x > 0, -k), 2**15),
    "half of it": (lambda x, k: torch.full_like(x, k / 2), 65504),
    "a square": (lambda x, k: torch.full_like(x, k * k), 2**7),
    "a factor": (lambda x, k: x * k, None),
    "another dtype": (lambda x, k: torch.full_like(x, k, dtype=torch.float32), None),
}


@pytest.mark.parametrize(("reference", "most"), FLOATS.values(), ids=FLOATS.keys())
def test_a_float_stays_where_the_dtype_that_it_is_converted_to_holds_it(reference, most):
    bounds = {guard.relation: guard.bound for guard in traced(reference, 5.0, torch.float16).number_guards}
    assert bounds == ({} if most is None else {">=": -most, "<=": most})


def test_a_float_that_cannot_be_bounded_around_zero_needs_its_value():
    with pytest.raises(NumberNeeded) as refusal:
        traced(lambda x, k: torch.full_like(x, k), 5.0, torch.uint8)
    assert refusal.value.names == ("k",)


def test_two_integers_share_what_room_there_is():
    specs = [TensorSpec("x", torch.float32, (4,)), NumberSpec("j", 3), NumberSpec("k", 5)]
    graph, _ = trace(lambda x, j, k: x * (j * k), specs)
    for j, k, fits in ((2**31, 2**31, True), (1, 9, True), (-(2**31), 7, True), (2**40, 2**40, False)):
        assert all(guard.holds({"j": j, "k": k}[guard.name]) for guard in graph.number_guards) == fits


NEEDED = {
    "a slice": lambda x, k: x[:, :k] * 1,
    "a dimension": lambda x, k: x.sum(k - 1),
    "an index": lambda x, k: x[k] * 1,
    "a size": lambda x, k: x.new_zeros(k),
    "a shift of places": lambda x, k: x.roll(k, 0),
    "a count": lambda x, k: x * len(range(k)),
    "a value": lambda x, k: x * 2 if k == 2 else x,
    "a bit": lambda x, k: x * 2 if k % 2 else x + 1,
    "a float": lambda x, k: x * float(k),
    "text": lambda x, k: x * len(f"{k}"),
    "a size that is a value": lambda x, k: x * (k * x.shape[0]),
    "an exponent": lambda x, k: x**k,
}


@pytest.mark.parametrize("reference", NEEDED.values(), ids=NEEDED.keys())
def test_what_needs_a_value_says_whose(reference):
    with pytest.raises(NumberNeeded) as refusal:
        traced(reference, 2)
    assert refusal.value.names == ("k",)
    assert refusal.value.again().names == ("k",)
    assert refusal.value.only_here == (reference is NEEDED["an exponent"])


def by_pattern(x, k):
    match k:
        case int():
            return x * k
        case _:
            return x


def of_a_class(x, k):
    return x * k if k.__class__ is int else x


def of_another(x, k):
    return x + sum(by_pattern(x, each) for each in (k, 2))


def of_values(x, k):
    match k:
        case 1:
            return x
        case _:
            return x * k


@pytest.mark.parametrize(
    ("function", "expected"), [(by_pattern, True), (of_a_class, True), (of_another, True), (of_values, False)]
)
def test_a_question_of_types_is_seen(function, expected):
    assert asks_for_types(function) == expected


def test_a_library_operation_that_needs_a_value_says_whose():
    with pytest.raises(NumberNeeded, match=r"aten::pow\.Tensor_Scalar needs the value") as refusal:
        lowered(lambda x, k: x**k, [TensorSpec("x", torch.int64, (4,)), NumberSpec("k", 5)])
    assert refusal.value.names == ("k",)


def test_numbers_are_computed_by_kernels():
    def reference(x: Tensor, k: int) -> Tensor:
        return x * (k // 3 + k % 5 + torch.sym_min(k, 9)) / (1 - 0.9**k) * 2**k

    program = lowered(reference, [TensorSpec("x", torch.float32, (4,)), NumberSpec("k", 5)])
    assert not [step for step in program.steps if isinstance(step, Call)]
