"""bfloat16 and float16: every value there is, where they are rounded, and where they are not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from opwright.api.operator import Operator
from opwright.settings import Settings

Function = Callable[..., torch.Tensor | tuple[torch.Tensor, ...]]
HALVES = (torch.bfloat16, torch.float16)
LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "row-major": lambda x: x.view(256, 256),
    "transposed": lambda x: x.view(256, 256).mT,
    "every other": lambda x: x.view(256, 256).repeat_interleave(2, -1)[:, ::2],
}

pytestmark = [
    pytest.mark.built_together,
    pytest.mark.parametrize("dtype", HALVES, ids=str),
]


def copied(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


def widened(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.float32)


def to_bfloat16(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.bfloat16)


def to_float16(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.float16)


def rounded_on_the_way(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x.to(torch.float32) * 1.1).to(y.dtype).to(torch.float32) - x.to(torch.float32) * 1.1


def largest(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scaled = x * 1.1
    return (scaled == scaled.amax(-1, keepdim=True)) * 1.0, scaled >= scaled.amin(-1, keepdim=True)


def masked(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    doubled = x * 2.01
    stored = doubled.clone()
    return stored, doubled == y, torch.where(doubled > y, doubled, y)


def chained(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x * y + 0.3) * torch.sigmoid(x - y) + x.mT.exp().mT / 3


def filled(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.full_like(x, 0.1) * x, torch.full((), 0.1, dtype=x.dtype).to(torch.float32) * 3


def pieces(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.cat([x * 3, y.mT, (x + y) @ y], 0)


def normed(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Library operations with several results, and softmax, whose decomposition converts to float32 and back."""
    return torch.nn.functional.layer_norm(x, (x.shape[-1],)) * y + torch.nn.functional.softmax(y * 2, -1)


def narrower_integers(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return (x * 1.3).to(torch.int32), (x * 0.001).to(torch.bool)


def summed(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The gradient is the exponential of the difference between elements, computed again, and the output."""
    return ((x + y) * torch.arange(x.shape[-1])).logsumexp(-1)


def beside_a_library_operation(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    scaled = x * 7.3
    return (scaled - scaled.unflatten(-1, (-1, 3)).logcumsumexp(-1).flatten(-2)).exp() * y


@pytest.fixture
def compiled(settings_quick_by_day: Settings) -> Callable[[Function], Operator]:
    return lambda function: Operator(function, settings=settings_quick_by_day)


def every_value(dtype: torch.dtype) -> torch.Tensor:
    return torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)


def same(actual: torch.Tensor, expected: torch.Tensor) -> bool:
    """The same to the last bit, apart from which NaN it is."""
    assert actual.dtype is expected.dtype
    bits = {2: torch.int16, 4: torch.int32}[expected.dtype.itemsize]
    return bool(((actual.view(bits) == expected.view(bits)) | (actual.isnan() & expected.isnan())).all())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_load_and_store_keep_every_bit(dtype: torch.dtype, layout: str, compiled: Callable[..., Operator]) -> None:
    operator, x = compiled(copied), LAYOUTS[layout](every_value(dtype))
    assert torch.equal(operator(x).view(torch.int16), x.contiguous().view(torch.int16))
    assert operator.last_rung == "cpp"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_value_becomes_float32(dtype: torch.dtype, layout: str, compiled: Callable[..., Operator]) -> None:
    operator, x = compiled(widened), LAYOUTS[layout](every_value(dtype))
    assert same(operator(x), widened(x))
    assert operator.last_rung == "cpp"


def test_float32_is_rounded_to_nearest_even(dtype: torch.dtype, compiled: Callable[..., Operator]) -> None:
    """On every value, on what lies half way between two, and on the neighbours of both."""
    steps = 2**15 if dtype is torch.bfloat16 else 2**12
    base = every_value(dtype).to(torch.float32).view(torch.int32)
    near = torch.stack([base + offset for offset in (0, 1, -1, steps, steps + 1, steps - 1, 3 * steps)])
    random = torch.randint(-(2**31), 2**31, (2**20,), generator=torch.Generator().manual_seed(0)).to(torch.int32)
    x = torch.cat([near.flatten(), random]).view(torch.float32)
    convert = to_bfloat16 if dtype is torch.bfloat16 else to_float16
    operator = compiled(convert)
    assert same(operator(x), convert(x))
    assert operator.last_rung == "cpp"


def test_a_conversion_that_the_user_writes_rounds(dtype: torch.dtype, compiled: Callable[..., Operator]) -> None:
    x = every_value(dtype)[1024:2048]
    operator = compiled(rounded_on_the_way)
    assert torch.allclose(operator(x, x), rounded_on_the_way(x, x), rtol=0, atol=1e-6 * x.abs().max().item())
    assert operator(x, x).abs().max() > 0


def test_a_constant_is_rounded(dtype: torch.dtype, compiled: Callable[..., Operator]) -> None:
    x = torch.linspace(1, 2, 100).to(dtype)
    operator = compiled(filled)
    assert all(map(torch.equal, operator(x), filled(x)))


def test_masks_agree_with_what_is_stored(dtype: torch.dtype, compiled: Callable[..., Operator]) -> None:
    x = torch.randn(64, 300, generator=torch.Generator().manual_seed(0)).to(dtype)
    found, all_of_them = compiled(largest)(x)
    assert (found.sum(-1) >= 1).all()
    assert torch.equal(found, largest(x)[0])
    assert all_of_them.all()


def test_a_gradient_through_a_maximum_reaches_it(dtype: torch.dtype, compiled: Callable[..., Operator]) -> None:
    def furthest(x: torch.Tensor) -> torch.Tensor:
        return (x * 1.1).amax(-1)

    x = torch.randn(64, 300, generator=torch.Generator().manual_seed(0)).to(dtype).requires_grad_()
    (expected,) = torch.autograd.grad(furthest(x).sum(), x)
    operator = compiled(furthest)
    (actual,) = torch.autograd.grad(operator(x).sum(), x)
    assert torch.equal(actual, expected)
    assert actual.count_nonzero() >= 64


def test_gradients_flow_where_the_value_says_so(dtype: torch.dtype, compiled: Callable[..., Operator]) -> None:
    """What rows reduce to, and is saved, is not rounded between the forward and the backward pass."""

    def longer_by(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.relu(x.square().sum(-1).sqrt() - y.norm(dim=-1))

    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(2000, 64, generator=generator).to(dtype).requires_grad_() for _ in range(2))
    operator = compiled(longer_by)
    length = operator(x, y)
    for gradient in torch.autograd.grad(length.sum(), [x, y]):
        assert torch.equal(gradient.count_nonzero(-1) > 0, length > 0)
    assert operator.last_rung == "cpp"


def test_comparisons_see_rounded_operands(dtype: torch.dtype, compiled: Callable[..., Operator]) -> None:
    x = torch.linspace(-3, 3, 1001).to(dtype)
    y = x * 2.01
    stored, equal, chosen = compiled(masked)(x, y)
    assert equal.all()
    assert torch.equal(stored, y)
    assert torch.equal(chosen, y)


def test_integers_are_made_of_rounded_values(dtype: torch.dtype, compiled: Callable[..., Operator]) -> None:
    x = torch.linspace(-100, 100, 1001).to(dtype)
    x[0] = torch.finfo(dtype).smallest_normal
    assert all(map(torch.equal, compiled(narrower_integers)(x), narrower_integers(x)))


@pytest.mark.parametrize(
    "function", [chained, pieces, normed, summed, beside_a_library_operation], ids=lambda function: function.__name__
)
def test_error_is_not_above_that_of_eager(
    dtype: torch.dtype, function: Function, compiled: Callable[..., Operator]
) -> None:
    given = [torch.randn(96, 96, generator=torch.Generator().manual_seed(k)).to(dtype) for k in range(2)]

    def run(call: Function, kind: torch.dtype) -> list[torch.Tensor]:
        operands = [x.to(kind).requires_grad_() for x in given]
        output = call(*operands)
        assert isinstance(output, torch.Tensor)
        weight = torch.linspace(0.5, 1.5, output.numel(), dtype=torch.float64).view(output.shape).to(dtype).to(kind)
        return [output.detach(), *torch.autograd.grad(output, operands, weight)]

    operator = compiled(function)
    triples = zip(run(operator, dtype), run(function, dtype), run(function, torch.float64), strict=True)
    for actual, eager, exact in triples:
        assert actual.dtype is eager.dtype
        mine, theirs = ((tensor.double() - exact).abs().mean() for tensor in (actual, eager))
        assert mine <= 1.02 * theirs
    assert operator.last_rung == "cpp"


def roots(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x**0.5, x**-0.5


def test_roots_of_every_value(dtype: torch.dtype, compiled: Callable[..., Operator]) -> None:
    """Those of float16 are general powers in torch, which differ at -inf and -0."""
    x = torch.arange(-(2**15), 2**15, dtype=torch.int16).view(dtype)
    for actual, expected in zip(compiled(roots)(x), roots(x), strict=True):
        torch.testing.assert_close(actual, expected, equal_nan=True)
        assert torch.equal(actual.signbit()[~expected.isnan()], expected.signbit()[~expected.isnan()])
