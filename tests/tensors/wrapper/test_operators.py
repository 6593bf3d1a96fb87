"""Operators of opwright on wrappers: kernels run on what is inside, and the type's rule wraps the results."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import opwright
from opwright.errors import WrapperRefused
from tests.tensors.wrapped import Meta, Pair, Strict, owned


@opwright.operator
def wrapped_gate(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(y) + torch.tanh(x)


@opwright.operator
def wrapped_members(given: dict[str, torch.Tensor], factor: float) -> dict[str, torch.Tensor]:
    return {"product": torch.exp(given["x"]) * given["y"] * factor}


@opwright.operator
def wrapped_with_itself(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.sigmoid(x) * 2, x


@opwright.operator(mutates=("x",))
def wrapped_change(x: torch.Tensor, y: torch.Tensor) -> None:
    x.mul_(y).add_(torch.sigmoid(y))


@opwright.operator
def wrapped_noise(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(torch.nn.functional.dropout(x, 0.5)) * x


class Foreign(torch.Tensor):
    pass


def test_kernels_run_inside_to_the_second_order() -> None:
    x, y = owned(3, 4).requires_grad_(), torch.randn(4, dtype=torch.float64, requires_grad=True)
    plain = x.elem.clone().requires_grad_()
    result, expected = wrapped_gate(x, y), wrapped_gate.reference(plain, y)
    assert wrapped_gate.last_rung == "cpp"
    assert result.owner == "me"
    torch.testing.assert_close(result.elem, expected)
    found = torch.autograd.grad(result.square().sum(), (x, y), create_graph=True)
    first = torch.autograd.grad(expected.square().sum(), (plain, y), create_graph=True)
    second = torch.autograd.grad((found[0] ** 2).sum() + (found[1] ** 2).sum(), (x, y))
    as_expected = torch.autograd.grad((first[0] ** 2).sum() + (first[1] ** 2).sum(), (plain, y))
    for wrapper, tensor in zip((*found, *second), (*first, *as_expected), strict=True):
        assert type(wrapper) is Meta
        torch.testing.assert_close(wrapper.densify(), tensor)


def test_the_wrapper_may_be_on_either_side() -> None:
    x, y = owned(3, 4), torch.randn(3, 4, dtype=torch.float64)
    assert wrapped_gate(y, x).owner == "me"
    assert wrapped_gate.last_rung == "cpp"
    assert wrapped_gate(owned(4, owner="first"), owned(4, owner="second")).owner == "first"


def test_members_of_structures_are_opened_and_results_in_them_wrapped() -> None:
    x, y = owned(3), torch.randn(3, dtype=torch.float64)
    product = wrapped_members({"x": x, "y": y}, 2.0)["product"]
    assert wrapped_members.last_rung == "cpp"
    assert product.owner == "me"
    torch.testing.assert_close(product.elem, x.elem.exp() * y * 2)


def test_a_result_in_the_memory_of_an_argument_is_the_argument() -> None:
    x = owned(3)
    made, same = wrapped_with_itself(x)
    assert same is x
    torch.testing.assert_close(made.elem, x.elem.sigmoid() * 2)


def test_what_an_operator_changes_is_changed_inside() -> None:
    x, y = owned(3), torch.randn(3, dtype=torch.float64)
    expected = x.elem * y + y.sigmoid()
    inside = x.elem
    wrapped_change(x, y)
    assert wrapped_change.last_rung == "cpp"
    assert x.elem is inside
    torch.testing.assert_close(inside, expected)
    plain = expected.clone()
    wrapped_change(plain, owned(3))
    assert type(plain) is torch.Tensor


def test_gradients_of_what_an_operator_changes() -> None:
    x, y = owned(3).requires_grad_(), torch.randn(3, dtype=torch.float64, requires_grad=True)
    plain = x.elem.clone().requires_grad_()
    gradients = []
    for leaf, change in ((x, wrapped_change), (plain, wrapped_change.reference)):
        base = leaf * 1
        change(base, y)
        gradients.append(torch.autograd.grad(base.square().sum(), (leaf, y)))
    for found, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(found.densify(), expected)


def test_what_shares_memory_with_a_changed_argument_is_left_to_the_function() -> None:
    for make in (lambda x: x.elem, lambda x: x[:], lambda x: Meta(x.elem, "another")):
        x = owned(3)
        expected = x.elem.clone()
        wrapped_change.reference(expected, expected)
        wrapped_change(x, make(x))
        assert wrapped_change.last_rung == "composed"
        torch.testing.assert_close(x.elem, expected)


def test_rules_for_operators_that_change_arguments() -> None:
    kind = type("Own", (Meta,), {})
    x, y = kind(torch.ones(3), "me"), torch.full((3,), 2.0)
    kind.rule("refuse", wrapped_change)
    with pytest.raises(WrapperRefused, match="Own refuses opwright::wrapped_change"):
        wrapped_change(x, y)
    assert x.elem.eq(1).all()
    kind.rule(lambda x, y: (None, [x.elem * y]), wrapped_change)
    wrapped_change(x, y)
    assert x.elem.eq(2).all()
    kind.rule(lambda x, y: None, wrapped_change)
    with pytest.raises(WrapperRefused, match="changes 1 of its arguments, returned NoneType"):
        wrapped_change(x, y)


def test_a_type_that_refuses_an_operator_is_heard() -> None:
    kind = type("Own", (Meta,), {})
    kind.rule("refuse", wrapped_gate)
    with pytest.raises(WrapperRefused, match="Own refuses opwright::wrapped_gate"):
        wrapped_gate(kind(torch.ones(3), "me"), torch.ones(3))


def test_a_type_around_several_tensors_without_rules_for_operators_runs_their_operations() -> None:
    kind = type("Bounds", (Pair,), {})
    kind.rule("rewrap", torch.ops.aten)
    x = kind(torch.zeros(3), torch.ones(3))
    result = wrapped_gate(x, x)
    for inside, found in ((x.low, result.low), (x.high, result.high)):
        torch.testing.assert_close(found, wrapped_gate.reference(inside, inside))


def test_gradients_see_the_numbers_that_were_drawn() -> None:
    x = Meta(torch.ones(64), "me").requires_grad_()
    result = wrapped_noise(x)
    (gradient,) = torch.autograd.grad(result, x, torch.ones(64))
    dropped = result.elem == 0
    assert 0 < dropped.sum() < 64
    assert gradient.elem[dropped].eq(0).all()
    assert gradient.elem[~dropped].ne(0).all()


def test_rules_are_for_operators_too() -> None:
    kind = type("Own", (Meta,), {})
    x = kind(torch.ones(3), "me")
    assert type(wrapped_gate(x, x)) is kind
    kind.rule("reduction", wrapped_gate)
    assert type(wrapped_gate(x, x)) is torch.Tensor
    kind.rule(lambda x, y: kind(x.elem + y.elem, "handler"), wrapped_gate)
    assert wrapped_gate(x, x).owner == "handler"


def test_an_operator_may_be_a_rule() -> None:
    kind = type("Own", (Meta,), {})
    kind.rule(lambda x, y: kind(wrapped_gate(x.elem, y.elem), "operator"), torch.ops.aten.mul.Tensor)
    x = kind(torch.randn(3), "me")
    product = x * x
    assert product.owner == "operator"
    torch.testing.assert_close(product.elem, wrapped_gate.reference(x.elem, x.elem))


def test_types_that_are_not_related_are_refused() -> None:
    with pytest.raises(TypeError):
        wrapped_gate(owned(3), Strict(torch.ones(3, dtype=torch.float64), "m"))


def test_other_subclasses_see_the_operations_of_the_reference() -> None:
    x = torch.randn(3).as_subclass(Foreign)
    assert type(wrapped_gate(x, torch.ones(3))) is Foreign
    assert wrapped_gate.last_rung == "composed"


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.nightly)])
def test_it_stays_one_operation_under_the_compiler(backend: str) -> None:
    x, y = owned(3, 4).requires_grad_(), torch.randn(4, dtype=torch.float64)
    wrapped_gate(x, y)
    torch._dynamo.reset()

    def called(x: Any, y: torch.Tensor) -> Any:
        return wrapped_gate(x, y) * 2

    compiled = torch.compile(called, backend=backend, fullgraph=True)
    result = compiled(x, y)
    assert result.owner == "me"
    torch.testing.assert_close(result.elem, called(x.elem, y))
    (gradient,) = torch.autograd.grad(result.sum(), x)
    (expected,) = torch.autograd.grad(called(x, y).sum(), x)
    torch.testing.assert_close(gradient.elem, expected.elem)


def test_transforms_of_operators_on_wrappers() -> None:
    x, y = owned(3, 4), torch.randn(4, dtype=torch.float64)
    gradient = torch.func.grad(lambda x: wrapped_gate(x, y).sum())(x)
    assert gradient.owner == "me"
    assert wrapped_gate.last_rung == "cpp"
    torch.testing.assert_close(torch.func.vmap(wrapped_gate, (0, None))(x, y).elem, wrapped_gate(x.elem, y))


class Gated(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(Meta(torch.randn(4, 4, dtype=torch.float64), "weight"))

    def forward(self, x: Any) -> Any:
        return wrapped_gate(x @ self.weight, x)


@pytest.mark.parametrize("strict", [False, True])
def test_an_operator_is_exported_with_wrappers(strict: bool) -> None:
    module, x = Gated(), owned(3, 4)
    exported = torch.export.export(module, (x,), strict=strict)
    found, expected = exported.module()(x), module(x)
    assert (type(found), found.owner) == (type(expected), expected.owner) == (Meta, "me")
    torch.testing.assert_close(found.elem, expected.elem)
    called = [str(node.target) for node in exported.graph.nodes if node.op == "call_function"]
    assert called.count("opwright.wrapped_gate.default") == 1
