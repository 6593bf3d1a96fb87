import pytest
import torch

from opwright.checking.accuracy import Comparison
from opwright.checking.finding import Fault
from opwright.checking.tolerance import reduction_length, tolerance

NAN, INF = float("nan"), float("inf")
EPS = torch.finfo(torch.float32).eps


def compare(actual, eager, exact, dtype=torch.float32):
    """Compare vectors padded to 16 elements, so that none is lone."""
    padding = [1.0] * (16 - len(actual))
    actual, eager = (torch.tensor([*values, *padding], dtype=dtype) for values in (actual, eager))
    return Comparison("output", [actual], [eager], [torch.tensor([*exact, *padding], dtype=torch.float64)], []).judge()


@pytest.mark.parametrize(
    ("actual", "eager", "exact"),
    [
        ([1.0], [1.0], [1.0]),
        ([1.0 + 4 * EPS], [1.0], [1.0]),
        ([1.0 + 100 * EPS], [1.0 + 50 * EPS], [1.0]),
        ([NAN, INF, -INF], [NAN, INF, -INF], [NAN, INF, -INF]),
        ([INF], [INF], [1e40]),
        ([1e38], [INF], [1e38]),
        ([0.0], [-0.0], [0.0]),
        ([1e-30], [0.0], [0.0]),
        ([INF], [NAN], [NAN]),
        ([NAN], [0.0], [0.7]),
    ],
)
def test_what_rounding_explains_is_accepted(actual, eager, exact):
    compare(actual, eager, exact)


@pytest.mark.parametrize(
    ("actual", "eager", "exact", "message"),
    [
        ([1.0 + 8 * EPS], [1.0], [1.0], "output 0 is wrong: error 9.5e-07, allowed 6e-07"),
        ([1.0 + 120 * EPS], [1.0 + 50 * EPS], [1.0], "output 0 is wrong"),
        ([NAN], [1.0], [1.0], r"output 0 is nan at \[0\], where the reference has 1.0"),
        ([1.0], [NAN], [NAN], r"output 0 is 1.0 at \[0\], where the reference has nan"),
        ([2.0, INF], [2.0, -INF], [2.0, -INF], r"output 0 is inf at \[1\], where the reference has -inf"),
        ([INF], [1e38], [1e38], "output 0 is inf"),
        ([NAN], [0.6], [0.7], "output 0 is nan"),
        ([NAN], [0.0], [0.0], "output 0 is nan"),
        ([NAN], [1.0], [0.0], "output 0 is nan"),
        ([0.0], [NAN], [0.7], "output 0 is wrong"),
    ],
)
def test_what_rounding_does_not_explain_is_a_fault(actual, eager, exact, message):
    with pytest.raises(Fault, match=message):
        compare(actual, eager, exact)


@pytest.mark.parametrize(
    ("actual", "message"),
    [
        ([], "0 tensors where the reference has 1"),
        ([torch.ones(2)], r"output 0 has shape \(2,\), the reference's has \(3,\)"),
        ([torch.ones(3, dtype=torch.float64)], "output 0 has dtype float64, the reference's has float32"),
        ([torch.ones(3, device="meta")], "output 0 has device meta, the reference's has cpu"),
    ],
)
def test_another_kind_of_tensor_is_a_fault(actual, message):
    eager = torch.ones(3)
    with pytest.raises(Fault, match=message):
        Comparison("output", actual, [eager], [eager.double()], []).judge()


def test_the_error_is_relative_to_the_largest_value():
    accuracy = compare([1000.0, 1e-3 * EPS], [1000.0, 0.0], [1000.0, 0.0])
    assert accuracy.error == pytest.approx(1e-6 * EPS)


def test_half_types_are_summed_in_float32():
    halves, singles = (tolerance(dtype, 10_000) - tolerance(dtype, 1) for dtype in (torch.bfloat16, torch.float32))
    assert halves == pytest.approx(singles)
    assert tolerance(torch.bfloat16, 1) == pytest.approx(2**-7, rel=1e-3)


@pytest.mark.parametrize(
    ("inputs", "output", "length"),
    [
        ([(4, 5), (4, 5)], (4, 5), 5),
        ([(40, 50)], (), 2000),
        ([(8, 300), (300, 8)], (8, 8), 300),
        ([(0, 3)], (3,), 3),
        ([], (2,), 1),
    ],
)
def test_the_reduction_length_is_estimated_from_shapes(inputs, output, length):
    assert reduction_length([torch.empty(shape) for shape in inputs], torch.empty(output)) == length


@pytest.mark.parametrize("place", [(0, 0), (2, 40_000), (2, 69_999)])
@pytest.mark.parametrize("special", [True, False])
def test_one_wrong_element_is_found_wherever_it_is(place, special):
    exact = torch.linspace(-1, 1, 210_000, dtype=torch.float64).reshape(70_000, 3).mT
    eager = exact.float()
    actual = eager.clone()
    actual[place] = NAN if special else 0.5
    words = rf"output 0 is nan at \[{place[0]}, {place[1]}\]" if special else "output 0 is wrong"
    with pytest.raises(Fault, match=words):
        Comparison("output", [actual], [eager], [exact], []).judge()


def test_errors_are_relative_to_the_largest_of_all_elements():
    exact = torch.ones(100_000, dtype=torch.float64)
    exact[-1] = 1000.0
    eager = exact.float()
    actual = eager.clone()
    actual[0] += 8 * EPS
    accuracy = Comparison("output", [actual], [eager], [exact], []).judge()
    assert accuracy.error == pytest.approx(8 * EPS / 1000)
    assert accuracy.eager_error == 0.0


def test_nothing_is_right():
    empty = torch.ones(0, 3)
    assert Comparison("output", [empty], [empty], [empty.double()], []).judge().error == 0.0


@pytest.mark.parametrize("width", [8, 33, 768])
@pytest.mark.parametrize("place", [0, 5, -1])
def test_a_norm_that_overflows_may_be_nan_wherever_eager_is_not(width, place):
    """Eager has NaN or the bias in such a row, depending on the place and on the width."""
    generator = torch.Generator().manual_seed(width)
    x, weight, bias = (torch.randn(shape, generator=generator) for shape in ((3, width), (width,), (width,)))
    x[1, place] = 3e38
    given = x, (width,), weight, bias
    eager = torch.nn.functional.layer_norm(*given)
    exact = torch.nn.functional.layer_norm(x.double(), (width,), weight.double(), bias.double())
    honest = eager.clone()
    honest[1] = NAN
    Comparison("output", [honest], [eager], [exact], [x, weight, bias]).judge()
    wrong = honest.clone()
    wrong[2, 3] = NAN  # no element of this row overflows
    with pytest.raises(Fault, match=r"output 0 is nan at \[2, 3\]"):
        Comparison("output", [wrong], [eager], [exact], [x, weight, bias]).judge()
