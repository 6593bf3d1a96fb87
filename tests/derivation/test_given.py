"""Values that the forward pass kept are given to the backward pass that is differentiated, which reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

import opwright
from opwright.api.operator import Operator
from opwright.derivation.joint import trace_joint
from opwright.derivation.saving.partition import inputs_behind, partition
from opwright.ir.program import Call, Program
from opwright.operators.stages import derive
from opwright.tracing.interface.specs import TensorSpec
from opwright.tracing.recording.values import Digests
from opwright.tracing.trace import trace

pytestmark = pytest.mark.built_together

Tensor = torch.Tensor


def hidden_layer(x: Tensor, w: Tensor) -> Tensor:
    return torch.tanh(x @ w)


def two_layers(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    return torch.tanh(torch.tanh(x @ w) @ v)


SPECS = (TensorSpec("x", torch.float64, (3, 4), True), TensorSpec("w", torch.float64, (4, 5), True))


def products(program: Program | None) -> int:
    return sum(isinstance(step, Call) and step.function == "aten::mm" for step in program.steps) if program else 0


def digest_of(reference: Callable[..., Tensor], *specs: TensorSpec) -> str:
    graph, _ = trace(reference, specs)
    return Digests().of(graph.outputs[0])


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (lambda x, w: torch.mm(x, w), True),
        (lambda x, w: x.t().t() @ w, False),  # the same value, and nobody claims that it is not
        (lambda x, w: x @ (w * 1.0000001), False),
        (lambda x, w: w.t() @ x.t(), False),
        (lambda x, w: (x @ w).sum(0), False),
    ],
)
def test_what_is_computed_alike_has_the_same_digest(other: Callable[..., Tensor], same: bool) -> None:
    assert (digest_of(lambda x, w: x @ w, *SPECS) == digest_of(other, *SPECS)) is same


def test_names_of_inputs_matter_and_sizes_do_not() -> None:
    x, w = SPECS
    mine = digest_of(lambda x, w: x @ w, x, w)
    assert mine == digest_of(lambda x, w: x @ w, replace(x, sizes=(7, 6)), replace(w, sizes=(6, 2)))
    assert mine != digest_of(lambda y, w: y @ w, replace(x, name="y"), w)


def test_what_is_drawn_has_no_digest() -> None:
    assert digest_of(lambda x, w: torch.bernoulli(x @ w), *SPECS) == ""
    assert digest_of(lambda x, w: torch.bernoulli(x) @ w, *SPECS) == ""


def backward_of(x: Tensor, w: Tensor, gradient: Tensor, known: Tensor | None) -> tuple[Tensor, ...]:
    slope = gradient * (1 - torch.tanh(x @ w) ** 2)
    return slope @ w.t(), x.t() @ slope


def backward_specs(digest: str) -> tuple[TensorSpec, ...]:
    kept = TensorSpec("known", torch.float64, (3, 5), digest=digest)
    return (*SPECS, TensorSpec("gradient", torch.float64, (3, 5), True), kept)


def test_a_given_value_is_not_computed() -> None:
    digest = digest_of(lambda x, w: x @ w, *SPECS)
    assert [products(derive(backward_of, backward_specs(d), "backward").forward) for d in (digest, "unknown")] == [2, 3]


def test_what_a_given_value_is_made_of_is_kept_for_who_computes_it() -> None:
    """The gradient of tanh(x @ w) for the cotangent reads the product alone; the reference needs x and w for it."""

    def slope(x: Tensor, w: Tensor, gradient: Tensor, known: Tensor | None) -> Tensor:
        return gradient * torch.tanh(x @ w)

    x, w, gradient, known = backward_specs(digest_of(lambda x, w: x @ w, *SPECS))
    joint = trace_joint(slope, (replace(x, requires_grad=False), replace(w, requires_grad=False), gradient, known))
    assert {node.name for node in partition(joint).inputs} == {"known"}
    assert {node.name for node in inputs_behind(joint)} == {"x", "w", "known"}


def test_a_given_value_may_be_made_of_another() -> None:
    def slope(x: Tensor, w: Tensor, v: Tensor, first: Tensor | None, second: Tensor | None, gradient: Tensor) -> Tensor:
        return gradient * torch.tanh(torch.tanh(x @ w) @ v)

    x, w, gradient, first = backward_specs(digest_of(lambda x, w: x @ w, *SPECS))
    v = TensorSpec("v", torch.float64, (5, 5))
    second = digest_of(lambda x, w, v: torch.tanh(x @ w) @ v, x, w, v)
    joint = trace_joint(
        slope,
        (
            replace(x, requires_grad=False),
            replace(w, requires_grad=False),
            v,
            replace(first, name="first"),
            replace(first, name="second", digest=second),
            gradient,
        ),
    )
    assert {node.name for node in partition(joint).inputs} == {"second"}
    assert {node.name for node in inputs_behind(joint)} == {"x", "w", "v", "first", "second"}


@pytest.fixture(params=[pytest.param("one layer", marks=pytest.mark.nightly), "two layers"])
def case(request: pytest.FixtureRequest) -> tuple[Operator, list[Tensor]]:
    torch.manual_seed(3)
    x, w, v = (torch.randn(4, 4, dtype=torch.float64).requires_grad_() for _ in range(3))
    if request.param == "one layer":
        return opwright.operator(hidden_layer, name="given::one_layer"), [x, w]
    return opwright.operator(two_layers, name="given::two_layers"), [x, w, v]


def third_order(function: Callable[..., Tensor], tensors: list[Tensor]) -> list[Tensor]:
    """Gradients of the squared gradients of squared gradients."""
    value = function(*tensors).square().sum()
    for _ in range(2):
        gradients = torch.autograd.grad(value, tensors, create_graph=True)
        value = sum((gradient.square().sum() for gradient in gradients), torch.zeros((), dtype=torch.float64))
    return list(torch.autograd.grad(value, tensors))


def test_third_order(case: tuple[Operator, list[Tensor]]) -> None:
    operator, tensors = case
    for _ in range(2):
        torch.testing.assert_close(third_order(operator, tensors), third_order(operator.reference, tensors))


def test_third_order_where_the_reference_serves_the_backward(
    case: tuple[Operator, list[Tensor]], monkeypatch: pytest.MonkeyPatch
) -> None:
    operator, tensors = case
    operator(*tensors)
    monkeypatch.setattr(Operator, "__call__", lambda self, *args: self.reference(*args))
    torch.testing.assert_close(third_order(operator, tensors), third_order(operator.reference, tensors))
