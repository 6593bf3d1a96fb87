"""Views are views, operations in place change what is inside and return the wrapper itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from opwright.errors import WrapperRefused
from tests.tensors.wrapped import Meta, Pair, owned

VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "view": lambda x: x.view(-1),
    "select": lambda x: x[1],
    "slice": lambda x: x[:, 1:3],
    "transpose": lambda x: x.t(),
    "split": lambda x: x.split(2)[1],
    "chunk": lambda x: x.chunk(2, 1)[0],
    "unbind": lambda x: x.unbind()[2],
    "expand": lambda x: x[:1].expand(3, 4),
    "as_strided": lambda x: x.as_strided((2, 2), (4, 1), 1),
    "unfold": lambda x: x.unfold(0, 2, 1),
    "diagonal": lambda x: x.diagonal(),
    "detach": lambda x: x.detach(),
    "real": lambda x: torch.view_as_complex(x.view(3, 2, 2)).real,
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_a_view(name: str) -> None:
    x = owned(3, 4)
    expected = x.elem.clone()
    view = VIEWS[name](x)
    assert type(view) is Meta
    assert view.stride() == VIEWS[name](expected).stride() == view.elem.stride()
    assert view.elem.untyped_storage().data_ptr() == x.elem.untyped_storage().data_ptr()
    assert view.untyped_storage()._cdata == x.untyped_storage()._cdata
    view.zero_()
    VIEWS[name](expected).zero_()
    torch.testing.assert_close(x.elem, expected)


@pytest.mark.parametrize("name", sorted(set(VIEWS) - {"detach", "real", "split", "unbind", "chunk", "expand"}))
def test_gradients_of_a_view_that_is_changed(name: str) -> None:
    x, plain = owned(3, 4), torch.zeros(3, 4, dtype=torch.float64)
    plain.copy_(x.elem)
    gradients = []
    for leaf in (x.requires_grad_(), plain.requires_grad_()):
        base = leaf * 2
        VIEWS[name](base).mul_(3)
        gradients.append(torch.autograd.grad(base.square().sum(), leaf)[0])
    torch.testing.assert_close(gradients[0].elem, gradients[1])


def test_operations_in_place_return_the_wrapper() -> None:
    x, inside = owned(3), torch.zeros(3)
    inside = x.elem
    assert x.add_(1) is x
    x += 1
    x[0] = 7
    assert x.elem is inside
    assert inside[0] == 7
    other = owned(3, owner="other")
    assert torch.mul(x, x, out=other) is other
    assert other.owner == "other"
    torch.testing.assert_close(other.elem, inside * inside)


def test_a_plain_tensor_that_is_changed_stays_plain() -> None:
    plain, x = torch.zeros(3, dtype=torch.float64), owned(3)
    assert plain.add_(x) is plain
    torch.testing.assert_close(plain, x.elem)
    assert torch.mul(x, x, out=plain) is plain
    torch.testing.assert_close(plain, x.elem * x.elem)


def test_changes_of_the_shape_are_seen_outside() -> None:
    x = owned(3, 4)
    assert x.t_() is x
    assert x.shape == x.elem.shape == (4, 3)
    assert x.stride() == x.elem.stride()
    x.unsqueeze_(0)
    assert x.shape == x.elem.shape == (1, 4, 3)


def test_each_of_several_tensors_is_changed_once() -> None:
    pair = Pair(torch.zeros(3), torch.ones(3))
    Pair.rule("element-wise", torch.ops.aten.add, torch.ops.aten.add_)
    pair += 1
    assert pair.low.eq(1).all()
    assert pair.high.eq(2).all()
    with pytest.raises(WrapperRefused, match="cannot be copied to or from a plain one"):
        torch.zeros(3).copy_(pair)


LAZY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "product": lambda x: x.conj() * 2,
    "matmul": lambda x: x @ x.mH,
    "both": lambda x: x.conj() * x,
    "fft": lambda x: torch.fft.fft(x.conj()),
    "hfft2": torch.fft.hfft2,
    "clone": lambda x: x.conj().clone(),
    "sum": lambda x: x.conj().sum(),
    "out": lambda x: torch.mul(x.conj(), x, out=torch.empty_like(x)),
    "real": lambda x: x.conj().clone().imag + x.real,
    "twice": lambda x: x.conj().conj() * 2,
    "imag": lambda x: torch.view_as_real(x)[..., 1].neg() + 1,
}


@pytest.mark.parametrize("name", LAZY)
def test_what_is_conjugated_lazily_is_conjugated(name: str) -> None:
    x = owned(3, 3, dtype=torch.complex128)
    torch.testing.assert_close(LAZY[name](x).elem, LAZY[name](x.elem))


def test_tensors_that_are_conjugated_or_negated_lazily_are_wrapped() -> None:
    x = torch.randn(3, 3, dtype=torch.complex128)
    conjugated, negated = Meta(x.conj(), "me"), Meta(x.conj().imag, "me")
    torch.testing.assert_close((conjugated * 2).elem, x.conj() * 2)
    torch.testing.assert_close((negated.exp() + negated).elem, x.conj().imag.exp() + x.conj().imag)
    torch.testing.assert_close((conjugated + conjugated).densify(), 2 * x.conj())
    with pytest.raises(WrapperRefused, match="is conjugated, and has no view") as refused:
        conjugated.imag.add_(1)
    assert "clone()" in str(refused.value)


def test_what_is_conjugated_lazily_is_a_view() -> None:
    x = owned(3, dtype=torch.complex128)
    expected = x.elem.clone()
    x.conj().mul_(2j)
    expected.conj().mul_(2j)
    torch.testing.assert_close(x.elem, expected)


def test_gradients_and_compilers_see_what_is_conjugated() -> None:
    def called(x: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(x.conj() * x * x).square().sum()

    x = owned(3, dtype=torch.complex128).requires_grad_()
    plain = x.elem.clone().requires_grad_()
    (expected,) = torch.autograd.grad(called(plain), plain)
    for function in (called, torch.compile(called, backend="aot_eager", fullgraph=True)):
        (found,) = torch.autograd.grad(function(x), x)
        torch.testing.assert_close(found.elem.resolve_conj(), expected.resolve_conj())


def test_data_that_are_assigned_are_inside() -> None:
    parameter = torch.nn.Parameter(owned(3, 4))
    held, other = parameter.elem, Meta(torch.ones(2, 5, dtype=torch.float64), owner="another")
    parameter.data = other
    assert parameter.shape == parameter.elem.shape == (parameter + 1).shape == (2, 5)
    assert (parameter.owner, parameter.requires_grad, parameter.elem is held) == ("another", True, True)
    other.zero_()  # the memory is the same from then on, as for plain tensors
    torch.testing.assert_close(parameter.elem, torch.zeros(2, 5, dtype=torch.float64))
    parameter.data.add_(2)
    torch.testing.assert_close(parameter.densify(), torch.full((2, 5), 2.0, dtype=torch.float64))
    with pytest.raises(WrapperRefused, match="a Meta cannot have the data of a Tensor"):
        parameter.data = torch.ones(2, 5)
