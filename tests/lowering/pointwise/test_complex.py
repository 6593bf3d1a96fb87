"""Every row of the table of complex operations, compiled, against eager: results and gradients, special values."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch

from opwright.api.operator import Operator
from opwright.lowering.pointwise.complex import COMPLEX
from opwright.settings import Settings
from tests.lowering.batch import Function, Results, arity, compiled, run_compiled, run_eager
from tests.quiet_settings import quiet_settings

aten = torch.ops.aten

FINITE = (-2.5, -1.0, -0.5, 0.25, 1.0, 3.0)
SPECIAL = (0.0, -0.0, 1.0, -2.5, float("inf"), float("-inf"), float("nan"))
_IN_ONE_OPERATOR = 13

# Operation → a call of it with one or two complex tensors of equal shape.
COMPLEX_SAMPLES: dict[Any, Function] = {
    aten.add: torch.add,
    aten.sub: lambda x, y: torch.sub(x, y, alpha=2 - 1j),
    aten.rsub: lambda x, y: aten.rsub.Tensor(x, y),
    aten.mul: torch.mul,
    aten.div: torch.div,
    aten.neg: torch.neg,
    aten.square: torch.square,
    aten.pow: torch.pow,
    aten.reciprocal: torch.reciprocal,
    aten.sqrt: torch.sqrt,
    aten.exp: torch.exp,
    aten.log: torch.log,
    aten.sigmoid: torch.sigmoid,
    aten.sin: torch.sin,
    aten.cos: torch.cos,
    aten.tanh: torch.tanh,
    aten.eq: torch.eq,
    aten.ne: torch.ne,
    aten.where: lambda x, y: torch.where(x == y, x, y * 1j),
    aten.logical_and: torch.logical_and,
    aten.logical_or: torch.logical_or,
    aten.logical_xor: torch.logical_xor,
    aten.logical_not: torch.logical_not,
    aten.clone: torch.clone,
    aten.to: lambda x: x.to(torch.complex128) * 1,
    aten._to_copy: lambda x: aten._to_copy.default(x, dtype=torch.complex128),
    aten.positive: lambda x: torch.positive(x) * 1,
    aten.copy: lambda x, y: aten.copy.default(x.detach(), y.detach()),
    aten.scalar_tensor: lambda x: x + aten.scalar_tensor.default(2.5j, dtype=torch.complex64),
    aten.fill: lambda x: aten.fill.Scalar(x, 2),
    aten.full: lambda x: torch.full(x.shape, 3 - 1j, dtype=x.dtype),
    aten.full_like: lambda x: torch.full_like(x, 1.5j),
    aten.empty_permuted: lambda x: torch.empty_like(x).copy_(x),
    aten._conj: lambda x, y: x.conj() + y,
    aten.conj_physical: lambda x: torch.conj_physical(x) * 1,
    aten.abs: torch.abs,
    aten.sgn: torch.sgn,
    aten.angle: torch.angle,
    aten.complex: lambda x, y: torch.complex(x.real * 1, y.imag * 1),
    aten.polar: lambda x, y: torch.polar(x.real * 1, y.imag * 1),
}
# Beside them, what is no row: the parts, and complex numbers as pairs.
OTHERS: dict[Any, Function] = {
    "real": lambda x, y: x.real + y.real,
    "imag": lambda x, y: (x * y).imag,
    "imag of conj": lambda x: x.conj().imag * 2,
    "view_as_real": lambda x, y: torch.view_as_real(x - y),
    "view_as_real seen otherwise": lambda x, y: torch.view_as_real(x - y)[..., 1:],
    "view_as_complex": lambda x, y: torch.view_as_complex(torch.view_as_real(x) * torch.view_as_real(y)),
    "from reals": lambda x: x.real * (1 + 2j),
    "to reals": lambda x: x.abs().to(torch.complex64) + x,
    "product of matrices": lambda x, y: x.conj() @ y.mT,
    "pieces": lambda x, y: torch.cat([x, y.abs(), y * 1j]),
    "a product added": lambda x, y: torch.addcmul(x, x, y),
    "a scaled product added": lambda x, y: torch.addcmul(x, y, x, value=2 - 1j),
    "a quotient added": lambda x, y: torch.addcdiv(x, x, y, value=2),
    "squared, cubed, halved": lambda x: x**2 + x**3 + x**0.5 + x**-1 + x**1.5,
}
ALL = {**COMPLEX_SAMPLES, **OTHERS}
ALSO_SPECIAL = [*COMPLEX_SAMPLES, "a product added", "a scaled product added", "a quotient added"]
DTYPES = (torch.complex64, pytest.param(torch.complex128, marks=pytest.mark.nightly))
QUALITIES = ("quick", pytest.param("optimized", marks=pytest.mark.nightly))
_TOLERANCE = {torch.float32: 3e-6, torch.float64: 1e-13}


def grid(parts: tuple[float, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.tensor([complex(re, im) for re, im in product(parts, parts)], dtype=dtype)


def operands(parts: tuple[float, ...], dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """All pairs of numbers with these parts."""
    numbers = grid(parts, dtype)
    x, y = (numbers.contiguous() for numbers in torch.meshgrid(numbers, numbers, indexing="ij"))
    return x.requires_grad_(), y.requires_grad_()


def parts_of(tensor: torch.Tensor) -> torch.Tensor:
    plain = tensor.detach().resolve_conj().resolve_neg()
    return torch.view_as_real(plain) if plain.is_complex() else plain


def agree(x: torch.Tensor, y: torch.Tensor, scale: float | torch.Tensor = 1.0) -> torch.Tensor:
    """Where two real tensors have the same infinities and NaN, and otherwise nearly the same numbers."""
    if not x.is_floating_point():
        return x == y
    near = (x - y).abs() <= _TOLERANCE[x.dtype] * (y.abs() + scale)
    return (x == y) | near | (x.isnan() & y.isnan())


def largest_part(x: torch.Tensor) -> torch.Tensor | float:
    """The larger part of each number: what rounding is relative to."""
    plain = x.detach().resolve_conj()
    if not plain.is_complex():
        return 0.0
    return parts_of(plain).abs().nan_to_num(0, 0, 0).amax(-1, keepdim=True)


class Compiled:
    """The results of all rows, a few operators at a time, made when they are first asked for."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._results: dict[Any, Results] = {}

    def result(self, key: Any, dtype: torch.dtype, parts: tuple[float, ...]) -> Results:
        if (key, dtype, parts) not in self._results:
            keys = list(ALL)
            begin = keys.index(key) // _IN_ONE_OPERATOR * _IN_ONE_OPERATOR
            chosen = {other: ALL[other] for other in keys[begin : begin + _IN_ONE_OPERATOR]}
            operator = compiled(f"complex_{begin}", chosen, self._settings)
            made = run_compiled(operator, chosen, operands(parts, dtype))
            assert operator.last_rung == "cpp"
            self._results.update({(other, dtype, parts): result for other, result in made.items()})
        return self._results[key, dtype, parts]


@pytest.fixture(scope="module", params=QUALITIES)
def compiled_rows(request: pytest.FixtureRequest) -> Compiled:
    return Compiled(quiet_settings(optimized=request.param == "optimized"))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("key", ALL, ids=str)
def test_on_finite_numbers(key: Any, dtype: torch.dtype, compiled_rows: Compiled) -> None:
    mine, eager = compiled_rows.result(key, dtype, FINITE), run_eager(ALL[key], operands(FINITE, dtype))
    pairs = [(mine.output, eager.output), *zip(mine.gradients, eager.gradients, strict=True)]
    for actual, expected in pairs:
        assert (actual is None) == (expected is None)
        if actual is None or expected is None:
            continue
        assert actual.dtype is expected.dtype
        wrong = ~agree(parts_of(actual), parts_of(expected), largest_part(expected) + 1.0)
        assert not wrong.any(), wrong.nonzero()[:5]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("key", ALSO_SPECIAL, ids=str)
def test_on_special_numbers(key: Any, dtype: torch.dtype, compiled_rows: Compiled) -> None:
    """Infinities and NaN stand where they stand in both of eager's kernels, the vectorised and the scalar one."""
    call, given = ALL[key], [operand.detach() for operand in operands(SPECIAL, dtype)][: arity(ALL[key])]
    whole = parts_of(call(*given))
    single = [call(*one) for one in zip(*(operand.flatten().split(1) for operand in given), strict=True)]
    one_by_one = parts_of(torch.cat(single)).view(whole.shape)
    actual = parts_of(compiled_rows.result(key, dtype, SPECIAL).output)
    wrong = agree(whole, one_by_one) & ~agree(actual, whole)
    places = wrong.nonzero()[:6].tolist()
    shown = [[tensor[tuple(place)].item() for tensor in (actual, whole)] for place in places]
    assert not wrong.any(), [*zip(places, shown, strict=True)]


def signs(z: torch.Tensor) -> torch.Tensor:
    return torch.sgn(z)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_smallest_numbers_have_signs(dtype: torch.dtype, settings_quick_by_day: Settings) -> None:
    smallest = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
    given = grid((0.0, smallest, -3 * smallest, 1e6 * smallest), dtype)
    operator = Operator(signs, name="tests::signs", settings=settings_quick_by_day)
    torch.testing.assert_close(operator(given), signs(given))
    assert operator.last_rung == "cpp"


def through_the_bits(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * y + torch.exp(x)


def of_reals(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) - y


CONJUGATES: dict[str, Function] = {
    "the left": lambda x, y: (x.conj(), y),
    "both": lambda x, y: (x.conj(), y.conj()),
    "a part": lambda x, y: (x[::2, 1:].conj(), y.conj()[::2, 1:]),
    "transposed": lambda x, y: (x.mT.conj().contiguous().mT, y.mH.mT),
    "without dimensions": lambda x, y: (x[0, 0].conj(), y[1, 1]),
    "empty": lambda x, y: (x[:0].conj(), y[:0]),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("which", CONJUGATES)
def test_what_has_the_conjugate_bit(which: str, dtype: torch.dtype, settings_quick_by_day: Settings) -> None:
    operator = Operator(through_the_bits, settings=settings_quick_by_day)
    given = [torch.randn(6, 7, dtype=dtype, generator=torch.Generator().manual_seed(k)) for k in range(2)]
    mine, eager = ([operand.detach().requires_grad_() for operand in CONJUGATES[which](*given)] for _ in range(2))
    for _ in range(2):
        actual, expected = operator(*mine), through_the_bits(*eager)
        assert operator.last_rung == ("composed" if which == "empty" else "cpp")
        torch.testing.assert_close(actual, expected)
        weight = expected.detach().conj()
        torch.testing.assert_close(
            torch.autograd.grad(actual, mine, weight), torch.autograd.grad(expected, eager, weight)
        )


def test_what_has_the_negative_bit(settings_quick_by_day: Settings) -> None:
    operator = Operator(of_reals, settings=settings_quick_by_day)
    numbers = torch.randn(6, 7, dtype=torch.complex64)
    x, y = numbers.conj().imag, torch.ones(6, 7)
    assert x.is_neg()
    torch.testing.assert_close(operator(x, y), of_reals(x, y))
    assert operator.last_rung == "cpp"


def test_every_row_has_a_sample() -> None:
    assert COMPLEX_SAMPLES.keys() == COMPLEX.keys()


@pytest.mark.parametrize("wrong", [1.0001, -1.0, float("nan"), float("inf")])
def test_comparison_notices_a_wrong_value(wrong: float) -> None:
    assert not agree(torch.tensor([wrong]), torch.tensor([1.0])).item()
