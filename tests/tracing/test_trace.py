"""What tracing keeps of a reference: operations, names, guards; and what it refuses."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

from opwright.derivation.joint import trace_joint
from opwright.errors import NoKernel, OpwrightError, UndeclaredMutation, UntraceableReference
from opwright.ir.expressions.integer import holds
from opwright.tracing.interface.specs import ConstantSpec, TensorSpec, describe
from opwright.tracing.trace import trace
from tests.derived import lowered, run, specs_of

Tensor = torch.Tensor
CLOSED_OVER = torch.ones(3)


def spec(name: str, *sizes: int, dtype: torch.dtype = torch.float32, requires_grad: bool = False) -> TensorSpec:
    return TensorSpec(name, dtype, sizes, requires_grad)


def lltm_cell(gates: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    i, o, g = gates.chunk(3, dim=-1)
    cell = old_cell + functional.elu(g) * torch.sigmoid(i)
    return torch.tanh(cell) * torch.sigmoid(o), cell


def test_names_of_local_variables() -> None:
    graph, result = trace(lltm_cell, [spec("gates", 4, 9), spec("old_cell", 4, 3)])
    assert {"gates", "old_cell", "i", "o", "g", "cell"} <= set(graph.names.values())
    assert graph.names[graph.outputs[1]] == "cell"
    assert [given.name for given in graph.inputs] == ["gates", "old_cell"]
    assert not result.is_bare


def test_members_of_a_local_tuple_are_numbered() -> None:
    def reference(x: Tensor) -> Tensor:
        halves = x.chunk(2)
        return halves[0] * halves[1]

    graph, result = trace(reference, [spec("x", 4)])
    assert {"halves_0", "halves_1"} <= set(graph.names.values())
    assert result.is_bare


def test_a_trace_runs_without_a_profiler() -> None:
    """Under one it takes 1.6 times as long."""

    def reference(x: Tensor) -> Tensor:
        return x.sin() if sys.getprofile() is None else x.cos()

    graph, _ = trace(reference, [spec("x", 4)])
    assert [node.target for node in graph.outputs] == [torch.ops.aten.sin.default]


Sizes = dict[str, int]
GUARDED: dict[str, tuple[Callable[..., Any], list[TensorSpec], list[Sizes], list[Sizes]]] = {
    "chunks of three": (
        lltm_cell,
        [spec("gates", 4, 9), spec("old_cell", 4, 3)],
        [
            {"gates_size_0": 16, "gates_size_1": 384, "old_cell_size_0": 16, "old_cell_size_1": 128},
            {"gates_size_0": 2, "gates_size_1": 6, "old_cell_size_0": 2, "old_cell_size_1": 2},
        ],
        [
            {"gates_size_0": 4, "gates_size_1": 9, "old_cell_size_0": 5, "old_cell_size_1": 3},
            {"gates_size_0": 4, "gates_size_1": 10, "old_cell_size_0": 4, "old_cell_size_1": 3},
            {"gates_size_0": 1, "gates_size_1": 9, "old_cell_size_0": 1, "old_cell_size_1": 3},
        ],
    ),
    "a branch on a size": (
        lambda x: x * 2 if x.shape[0] > 5 else x + 1,
        [spec("x", 8)],
        [{"x_size_0": 6}, {"x_size_0": 100}],
        [{"x_size_0": 5}, {"x_size_0": 2}],
    ),
    "one of two conditions": (
        lambda x: x.t().reshape(2, -1)[1] * 2,
        [spec("x", 6, 4)],
        [{"x_size_0": 6, "x_size_1": 4}, {"x_size_0": 9, "x_size_1": 6}, {"x_size_0": 6, "x_size_1": 5}],
        [{"x_size_0": 7, "x_size_1": 5}],
    ),
    "a size that broadcasts": (
        lambda x, y: x + y,
        [spec("x", 4), spec("y", 1)],
        [{"x_size_0": 7, "y_size_0": 1}],
        [{"x_size_0": 1, "y_size_0": 1}],
    ),
}


@pytest.mark.parametrize(("reference", "specs", "right", "wrong"), GUARDED.values(), ids=GUARDED)
def test_guards(reference: Callable[..., Any], specs: list[TensorSpec], right: list[Sizes], wrong: list[Sizes]) -> None:
    graph, _ = trace(reference, specs)
    assert all(holds(guard, sizes) for sizes in right for guard in graph.guards)
    assert all(any(not holds(guard, sizes) for guard in graph.guards) for sizes in wrong)


def seed(x: Tensor) -> Tensor:
    torch.manual_seed(0)
    return x * torch.rand_like(x)


def change_input(x: Tensor) -> Tensor:
    x.mul_(2)
    return x + 1


def change_expanded_temporary(x: Tensor) -> Tensor:
    y = x * 2
    y[:1].expand(1, *x.shape)[0].mul_(3)
    return y


def branch(x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 0 else x


def read(x: Tensor) -> Tensor:
    return x * x.max().item()


REFUSED: dict[str, tuple[Callable[..., Any], type[OpwrightError], str]] = {
    "a seed": (seed, UntraceableReference, "seeds the generator"),
    "random numbers in another order": (lambda x: torch.rand_like(x.expand(2, 3).t()), NoKernel, "in another order"),
    "an input modified": (change_input, UndeclaredMutation, "changes its argument 'x', which mutates= does not name"),
    "an expanded temporary modified": (change_expanded_temporary, NoKernel, "modifies a tensor in place"),
    "a tensor of the closure": (lambda x: x + CLOSED_OVER, NoKernel, "not one of its parameters"),
    "a branch on a value": (branch, UntraceableReference, "branch looks at the values of a tensor"),
    "a value as a number": (read, UntraceableReference, "read looks at the values of a tensor"),
    "no tensor": (lambda x: 3, NoKernel, "returns no tensor that it computes"),
    "an argument": (lambda x: [x], NoKernel, "returns no tensor that it computes"),
    "a size among tensors": (lambda x: (x + 1, x.shape[0]), NoKernel, "returns a SymInt at position 1"),
    "nothing": (lambda x: (), NoKernel, "returns no tensor that it computes"),
    "a view of an argument": (lambda x: x[1:], NoKernel, "returns a view of one of its arguments"),
    "a piece twice": (
        lambda x: (lambda y: (y, y.view(1, -1)))((x * 2).split([1, 2])[1]),
        NoKernel,
        "returns two views of the same memory",
    ),
    "two views": (lambda x: (lambda y: (y[1:], y[:-1]))(x * 2), NoKernel, "returns two views of the same memory"),
}


@pytest.mark.parametrize(("reference", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refusal(reference: Callable[..., Any], error: type[OpwrightError], message: str) -> None:
    with pytest.raises(error, match=message):
        trace(reference, [spec("x", 3)])


def test_a_refusal_names_the_line() -> None:
    with pytest.raises(UntraceableReference) as caught:
        trace(branch, [spec("x", 3)])
    place = caught.value.place
    assert place is not None
    assert (place.file, place.line) == (__file__, branch.__code__.co_firstlineno + 1)


@pytest.mark.parametrize(
    ("reference", "hides"),
    [
        (lambda x: x * x.detach(), True),
        (lambda x: x * 2, False),
        (lambda x: functional.softmax(functional.gelu(x), -1) + functional.layer_norm(x, (3,)), False),
        (lambda x: _without_gradients(x) + x, True),
    ],
)
def test_what_is_hidden_from_autograd(reference: Callable[..., Any], hides: bool) -> None:
    assert trace_joint(reference, [spec("x", 3, requires_grad=True)]).graph.hides_from_autograd is hides


def _without_gradients(x: Tensor) -> Tensor:
    with torch.no_grad():
        return x * 3


def in_place_comparison(x: Tensor) -> Tensor:
    y = x * 1.5
    y.gt_(0)
    return y


def in_place_through_alias(x: Tensor) -> Tensor:
    y = x * 1.5
    z = y.detach()
    y.add_(1)
    return z


@pytest.mark.parametrize("reference", [in_place_comparison, in_place_through_alias])
def test_a_modified_temporary_keeps_its_dtype_and_shows_through_aliases(reference: Callable[..., Any]) -> None:
    x = torch.tensor([-1.0, 2.0])
    (made,) = run(lowered(reference, specs_of("x", [x])), [x])
    torch.testing.assert_close(made, reference(x))


def test_describe() -> None:
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    assert describe(["x", "alpha"], [x, 0.5], gradients=True) == (
        TensorSpec("x", torch.float64, (2, 3), True),
        ConstantSpec("alpha", 0.5),
    )
    assert describe(["x"], [x], gradients=False) == (TensorSpec("x", torch.float64, (2, 3), False),)
