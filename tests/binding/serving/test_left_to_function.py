"""Functions that are one operation of PyTorch: they serve themselves, unless a rung is pinned."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from opwright.api.operator import Operator
from opwright.errors import NoKernel
from opwright.settings import Settings

Function = Callable[[Tensor, Tensor], Tensor]


def product(x: Tensor, y: Tensor) -> Tensor:
    return x @ y


def layer(x: Tensor, y: Tensor) -> Tensor:
    return functional.linear(x, y.t())


def remaining(x: Tensor, y: Tensor) -> Tensor:
    return torch.remainder(x, y)


def remaining_and_more(x: Tensor, y: Tensor) -> Tensor:
    return torch.remainder(x, y) + x


def multiplied(x: Tensor, y: Tensor) -> Tensor:
    return x.prod(-1)


def product_and_more(x: Tensor, y: Tensor) -> Tensor:
    return (x @ y).tanh()


def image(x: Tensor, y: Tensor) -> Tensor:
    return functional.max_pool1d(x, 2)


def handed_on(x: Tensor, y: Tensor) -> Tensor:
    return functional.dropout(x, training=False)


def normalized(x: Tensor, y: Tensor) -> Tensor:
    return functional.layer_norm(x, (4,))


def one_kernel(x: Tensor, y: Tensor) -> Tensor:
    return x * y


def operands() -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.rand(4, 4, generator=generator, requires_grad=True) for _ in range(2)]


def strict() -> Settings:
    return dataclasses.replace(Settings.from_environment(), strict=True)


@pytest.mark.parametrize(
    ("function", "rung"),
    [
        *((each, "composed") for each in (product, layer, image, handed_on, remaining, multiplied)),
        *((each, "cpp") for each in (product_and_more, one_kernel, normalized, remaining_and_more)),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_what_serves(function: Function, rung: str) -> None:
    operator = Operator(function, name=f"left_{function.__name__}", settings=strict())
    for _ in range(3):
        x, y = operands()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = torch.autograd.grad(operator(x, y).sum(), (x, y), allow_unused=True)
        assert operator.last_rung == rung
        torch.testing.assert_close(found, torch.autograd.grad(function(x, y).sum(), (x, y), allow_unused=True))
        with torch.no_grad():
            torch.testing.assert_close(operator(x, y), function(x, y))
        assert operator.last_rung == rung


def test_pinned_calls_have_kernels_and_later_calls_do_not() -> None:
    operator = Operator(product, name="left_pinned")
    x, y = operands()
    operator(x, y)
    assert operator.rungs()[2].variants == 0  # nothing was built
    torch.testing.assert_close(operator.on("cpp")(x, y), x @ y)
    assert operator.last_rung == "cpp"
    torch.testing.assert_close(operator(x, y), x @ y)
    assert operator.last_rung == "composed"


def test_transforms_and_second_derivatives() -> None:
    operator = Operator(product, name="left_transformed")
    x, y = operands()
    operator(x, y)
    batch = torch.rand(3, 4, 4)
    torch.testing.assert_close(
        torch.func.vmap(operator, (0, None))(batch, y), torch.func.vmap(product, (0, None))(batch, y)
    )
    slope = torch.func.grad(lambda x, y: operator(x, y).square().sum())
    torch.testing.assert_close(slope(x, y), torch.func.grad(lambda x, y: product(x, y).square().sum())(x, y))
    assert torch.autograd.gradgradcheck(operator, [t.detach().double().requires_grad_() for t in (x, y)])


def test_another_process_does_not_derive_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = operands()
    Operator(product, name="left_recorded")(x, y)
    again = Operator(product, name="left_recorded")
    monkeypatch.setattr(again, "_derive", lambda *_: pytest.fail("derived again"))
    torch.testing.assert_close(again(x, y), x @ y)
    assert again.last_rung == "composed"


DOUBLES = False


def by_a_flag(x: Tensor) -> Tensor:
    return x * 2 if DOUBLES else x


def test_a_function_is_left_to_itself_as_it_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    operator, x = Operator(by_a_flag, name="left_by_a_flag"), torch.rand(4)
    for doubles in (False, True, False):
        monkeypatch.setattr(f"{__name__}.DOUBLES", doubles)
        for _ in range(2):
            torch.testing.assert_close(operator(x), x * 2 if doubles else x, rtol=0, atol=0)
            assert operator.last_rung == ("cpp" if doubles else "composed")


def test_a_pinned_call_of_what_computes_nothing_raises() -> None:
    operator = Operator(handed_on, name="left_nothing")
    operator(*operands())
    with pytest.raises(NoKernel, match="returns no tensor that it computes"):
        operator.on("cpp")(*operands())
