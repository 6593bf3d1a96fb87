"""Calling: keywords, defaults, optional tensors, constants, sizes."""

import math

import pytest
import torch

import opwright
from opwright.ir.expressions.dtype import DType
from tests.operator.against_eager import assert_as_eager, random, variants
from tests.operator.operators import activated, biased, divided, mix, ranked, scaled_to_power, wave
from tests.suite.nights import mostly_at_night

X = random(3, 4)


@pytest.mark.parametrize(
    ("operator", "args", "kwargs"),
    [
        (scaled_to_power, (X,), {}),
        (scaled_to_power, (X, 3.0), {}),
        (scaled_to_power, (X,), {"scale": 3.0}),
        (scaled_to_power, (X,), {"power": 3, "scale": -1.5}),
        (scaled_to_power, (), {"negate": True, "x": X}),
        (scaled_to_power, (X, 2), {}),
        (activated, (X,), {}),
        (activated, (X, "sigmoid"), {}),
        (biased, (X, None), {}),
        (biased, (X,), {"bias": X}),
        (biased, (), {"residual": X, "bias": None, "x": X}),
    ],
)
def test_arguments_are_bound_as_python_binds_them(operator, args, kwargs):
    torch.testing.assert_close(operator(*args, **kwargs), operator.reference(*args, **kwargs))
    assert operator.last_rung == "cpp"


@pytest.mark.parametrize(
    "constants",
    mostly_at_night(
        [(0.0, -0.0), (1, 1.0), (math.nan, 2.0), (2**40, 2**40 + 1), (True, 1), (1.0, -1.0), (math.inf, -math.inf)],
        by_day=5,
        whole=True,
    ),
)
def test_each_constant_has_a_kernel_of_its_own(constants):
    for constant in constants:
        torch.testing.assert_close(divided(X, constant), divided.reference(X, constant), equal_nan=True)
        assert divided.last_rung == "cpp"


def test_a_constant_seen_before_derives_nothing():
    for constant in (math.nan, 0.5):
        divided(X, constant)
    before = variants(divided)
    for constant in (float("nan"), 0.5, math.nan):
        divided(X, constant)
    assert variants(divided) == before


@pytest.mark.parametrize(
    ("name", "body", "most"),
    [
        ("pointwise", "torch.sin(x) * 2", 1),
        ("rows", "x / (x * x).sum(1, keepdim=True)", 1),
        ("halves", "torch.cat([x[:, ::2], x[:, 1::2]], 1)", 4),
    ],
)
def test_a_new_size_derives_nothing(name, body, most):
    namespace = {"torch": torch, "Tensor": torch.Tensor}
    exec(f"def sizes_{name}(x: Tensor) -> Tensor: return {body}", namespace)
    operator = opwright.operator(namespace[f"sizes_{name}"])
    for rows, columns in ((2, 2), (3, 5), (5, 3), (64, 7), (2, 4096), (4096, 2), (100, 100), (7, 8)):
        assert_as_eager(operator, random(rows, columns), order=1)
    assert variants(operator) <= most + 1


def test_two_kinds_of_sizes_keep_two_variants():
    @opwright.operator
    def by_length(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] > 10 else x * 3

    for length in (4, 19, 5, 30, 2, 1000):
        assert_as_eager(by_length, random(length), order=1)
    assert variants(by_length) == 2


SLICES = [
    "x[-2:]",
    "x[-100:]",
    "x[:100] + x[-100:]",
    "x[-4:-1]",
    "x[-5::2]",
    "x[1:-1] * x[2:] - x[:-2]",
    "x[x.shape[0] // 2 :]",
    "x[: min(x.shape[0], 7)]",
    "x[-1] * x",
    "x[-(x.shape[0] // 2 + 1) :]",
    "x.narrow(0, -1, 1)",
    "x[::3]",
    "x.flip(0)[1:]",
]


@pytest.mark.parametrize("text", mostly_at_night(SLICES, by_day=SLICES[::4]))
def test_slices_of_every_length(text):
    number = SLICES.index(text)
    namespace = {"torch": torch, "Tensor": torch.Tensor}
    exec(f"def slice_{number}(x: Tensor) -> Tensor: return ({text}) * 2", namespace)
    operator = opwright.operator(namespace[f"slice_{number}"])
    for length in (3, 5, 7, 8, 20, 99, 101, 150, 4):
        expected = operator.reference(random(length))
        torch.testing.assert_close(operator(random(length)), expected)


NUMBERS_OF_SIZES = [
    "x * x.shape[-1]",
    "x / x.shape[0]",
    "x / math.sqrt(x.shape[-1])",
    "x * x.shape[-1] ** -0.5",
    "x + x.shape[0] / x.shape[1]",
    "x * len(x) - x.numel()",
    "x + torch.full((x.shape[-1],), 2.0 * x.shape[0])",
    "x + torch.arange(x.shape[-1])",
    "x.sum(0) / x.size(0)",
    "x * (x.shape[0] % 3) + x.shape[1] // 2",
    "x if x.shape[0] == x.shape[1] else x.mT.mT * 2",
]


@pytest.mark.parametrize(
    "number",
    mostly_at_night(range(len(NUMBERS_OF_SIZES)), by_day=(3, 5, 7, 9)),
    ids=NUMBERS_OF_SIZES,
)
def test_numbers_made_from_sizes_are_those_of_each_call(number):
    namespace = {"torch": torch, "Tensor": torch.Tensor, "math": math}
    exec(f"def number_{number}(x: Tensor) -> Tensor: return ({NUMBERS_OF_SIZES[number]}) * 2", namespace)
    operator = opwright.operator(namespace[f"number_{number}"])
    for shape in ((4, 6), (6, 4), (5, 5), (9, 3), (3, 16)):
        torch.testing.assert_close(operator(random(*shape)), operator.reference(random(*shape)))


NAMES = [
    "double",
    "given",
    "sizes",
    "made",
    "new",
    "output",
    "grad_output",
    "x_size_0",
    "saved_0",
    "template",
    "i0",
    "j",
    "Size",
    "self",
    "exp",
    "std",
    "_",
    "rows",
    "torch",
    "static",
    "M_PI",
    "NAN",
    "known",
    "valid",
    "this",
    "call",
    "take",
    "stack",
]


@pytest.mark.parametrize("first", mostly_at_night(range(4), by_day=[1]))
def test_a_parameter_may_be_called_anything(first):
    names, namespace = NAMES[first::4], {"Tensor": torch.Tensor}
    head = f"def named_{first}({', '.join(f'{name}: Tensor' for name in names)}, x: Tensor) -> Tensor:\n"
    exec(f"{head}    rest = ({' + '.join(f'{name}.T * x' for name in names)}).exp()\n    return rest * 2", namespace)
    given = [random(3, 3, seed=seed) for seed in range(len(names) + 1)]
    assert_as_eager(opwright.operator(namespace[f"named_{first}"]), *given, order=1)


VARIABLES = ["given", "sizes", "NAN", "double", "made", "known", "call", "Size", "x_size_0", "stack"]


@pytest.mark.parametrize("name", mostly_at_night(VARIABLES, by_day=2))
def test_a_variable_may_be_called_anything(name):
    namespace = {"Tensor": torch.Tensor}
    exec(f"def local_{name}(x: Tensor) -> Tensor:\n    {name} = x.sum(0)\n    return {name}.exp() * x", namespace)
    assert_as_eager(opwright.operator(namespace[f"local_{name}"]), random(3, 4), order=1)


@pytest.mark.falls_back
@pytest.mark.parametrize("dtype", [torch.uint16, torch.float8_e5m2], ids=str)
def test_other_dtypes_are_served_by_the_reference_which_says_so_once(dtype, told):
    @opwright.operator
    def of_other_dtypes(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    x = torch.ones(3).to(dtype)
    for _ in range(3):
        assert torch.equal(of_other_dtypes(x).view(torch.uint8), x.view(torch.uint8))
        assert of_other_dtypes.last_rung == "composed"
    (said,) = told()
    fact = f"kernels do not hold {str(dtype).removeprefix('torch.')}"
    assert said.startswith(
        f"opwright: of_other_dtypes falls back to your function: {fact} (hint: convert it with .to(...) outside"
    )


DTYPES = [getattr(torch, dtype.value) for dtype in DType if not dtype.is_complex]
DTYPES_BY_DAY = [torch.bfloat16, torch.bool, torch.int64]


@pytest.mark.parametrize("dtype", mostly_at_night(DTYPES, DTYPES_BY_DAY), ids=str)
def test_integers_and_truth_values_come_and_go(dtype):
    values = torch.tensor([0, 1, 5, -3]).to(dtype)
    assert_as_eager(ranked, values, values.flip(0), order=0)
    assert_as_eager(mix, values, random(4), order=0)


@pytest.mark.parametrize(
    ("operator", "args", "kwargs"),
    [
        (wave, (), {}),
        (wave, (X, X), {}),
        (wave, (X,), {"x": X}),
        (wave, (X,), {"y": X}),
        (mix, (X, None), {}),
        (mix, (X, "text"), {}),
        (mix, (X, [1.0, 2.0]), {}),
        (mix, (X.detach(), {}), {}),
        (mix, (X, random(5)), {}),
        (wave, ([1.0],), {}),
        (scaled_to_power, (X, None), {}),
    ],
)
def test_a_wrong_call_raises_what_the_reference_raises(operator, args, kwargs):
    with pytest.raises((TypeError, RuntimeError, AttributeError)) as expected:
        operator.reference(*args, **kwargs)
    with pytest.raises(type(expected.value)) as raised:
        operator(*args, **kwargs)
    if "positional argument" not in str(expected.value) and "keyword" not in str(expected.value):
        assert "multiple values" in str(raised.value) or str(raised.value) == str(expected.value)


def test_a_number_in_place_of_a_tensor_is_what_the_reference_makes_of_it():
    torch.testing.assert_close(
        opwright.operator(times)(torch.ones(3, requires_grad=True), 2.0), times(torch.ones(3, requires_grad=True), 2.0)
    )


def times(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * y


def test_an_operator_is_called_and_read_like_its_function():
    assert scaled_to_power.__name__ == "scaled_to_power"
    assert scaled_to_power.__wrapped__ is scaled_to_power.reference
    assert scaled_to_power.__module__ == scaled_to_power.reference.__module__
    assert repr(scaled_to_power) == "<opwright operator opwright::scaled_to_power>"
