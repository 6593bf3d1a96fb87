"""Making wrappers: names, constructors, metadata, and autograd at the border."""

from __future__ import annotations

import pytest
import torch

from opwright.errors import WrapperRefused
from opwright.tensors import Wrapper
from tests.tensors.wrapped import Meta, Pair, Strict, Sub, owned


def test_it_shows_what_is_inside() -> None:
    inside = torch.randn(4, 6)[1:, ::2].t()
    wrapper = Meta(inside, owner="me")
    assert wrapper.owner == "me"
    assert wrapper.elem is inside
    for shown in (torch.Tensor.size, torch.Tensor.stride, torch.Tensor.storage_offset, torch.Tensor.is_contiguous):
        assert shown(wrapper) == shown(inside)
    assert repr(Meta(torch.ones(2), "me")) == "Meta(elem=tensor([1., 1.]), owner='me')"


def test_attributes_of_the_class_are_defaults() -> None:
    assert Sub(torch.ones(1), "me").purpose == "none"
    assert Sub(torch.ones(1), "me", purpose="all").purpose == "all"
    with pytest.raises(TypeError, match=r"Meta: missing a required argument: 'owner'\nhint: .* Meta\(elem, owner\)"):
        Meta(torch.ones(1))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({}, "names no tensor"),
        ({"data": "elem"}, "tuples of names"),
        ({"data": 3}, "tuples of names"),
        ({"data": ("a b",)}, "is no name"),
        ({"data": ("a", "a")}, "is no name"),
        ({"data": ("grad",)}, "would hide torch.Tensor.grad"),
        ({"data": ("elem",), "meta": ("shape",)}, "would hide torch.Tensor.shape"),
        ({"data": ("elem",), "dtype": "scale"}, "none of the tensors"),
    ],
)
def test_a_class_line_that_cannot_work_is_refused(line: dict[str, object], said: str) -> None:
    with pytest.raises(WrapperRefused, match=said):
        type("Bad", (Wrapper,), {}, **line)


def test_only_tensors_are_wrapped() -> None:
    with pytest.raises(WrapperRefused, match="elem of Meta is no tensor: 3"):
        Meta(3, "me")
    with pytest.raises(WrapperRefused, match="holds nothing itself"):
        Wrapper(torch.ones(1))


def test_the_lowest_class_is_what_comes_out() -> None:
    meta, sub = owned(3, owner="meta"), Sub(torch.ones(3, dtype=torch.float64), "sub", "all")
    for result in (meta + sub, sub + meta):
        assert type(result) is Sub
    assert (meta + sub).purpose == "none"
    assert (sub + meta).purpose == "all"


def test_types_that_are_not_related_do_not_mix() -> None:
    with pytest.raises(TypeError):
        owned(3) + Strict(torch.ones(3), "m")
    with pytest.raises(TypeError, match=r"aten.cat"):
        torch.cat([owned(3), Strict(torch.ones(3), "m")])


def test_metadata_that_differs_needs_a_merge() -> None:
    metre, other = Strict(torch.ones(3), "m"), Strict(torch.ones(3), "m")
    assert (metre + other).unit == "m"
    with pytest.raises(WrapperRefused, match="different metadata") as refusal:
        metre + Strict(torch.ones(3), "s")
    assert "define merge" in str(refusal.value)


def test_gradients_are_wrapped() -> None:
    x = owned(3, 4).requires_grad_()
    (gradient,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(gradient.sum(), x)
    for found, expected in ((gradient, 3 * x.elem**2), (second, 6 * x.elem)):
        assert type(found) is Meta
        assert found.owner == "me"
        torch.testing.assert_close(found.elem, expected)


def test_gradients_flow_through_the_border() -> None:
    x = torch.randn(3, requires_grad=True)
    (Meta(x, "me") * 3).densify().square().sum().backward()
    torch.testing.assert_close(x.grad, 18 * x.detach())
    assert type(x.grad) is torch.Tensor
    wrapper = owned(3).requires_grad_()
    wrapper.densify().sum().backward()
    assert wrapper.grad.owner == "me"


def test_one_of_several_tensors_may_not_require_gradients() -> None:
    with pytest.raises(WrapperRefused, match="requires gradients"):
        Pair(torch.ones(3, requires_grad=True), torch.ones(3))
    pair = Pair(torch.ones(3), torch.ones(3)).requires_grad_()
    assert pair.requires_grad
    assert not pair.low.requires_grad
