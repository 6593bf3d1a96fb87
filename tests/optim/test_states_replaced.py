"""States that are replaced from outside between two steps: a step sees them, whether C++ or Python looks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
import torch

from opwright import optim
from opwright.optim.serving.watching import watching


def emptied(optimizer: Any) -> None:
    optimizer.state.clear()


def begun_anew(optimizer: Any) -> None:
    optimizer.state = defaultdict(dict)


def one_replaced(optimizer: Any) -> None:
    first = optimizer.param_groups[0]["params"][0]
    optimizer.state[first] = {name: torch.zeros_like(value) for name, value in optimizer.state[first].items()}


def one_tensor_replaced(optimizer: Any) -> None:
    state = optimizer.state[optimizer.param_groups[0]["params"][0]]
    state["exp_avg"] = torch.ones_like(state["exp_avg"])


def memory_replaced(optimizer: Any) -> None:
    state = optimizer.state[optimizer.param_groups[0]["params"][0]]
    state["exp_avg"].data = torch.ones_like(state["exp_avg"])


def parameter_replaced(optimizer: Any) -> None:
    optimizer.param_groups[0]["params"][0].data = torch.ones(4, 4)


def gradient_transposed(optimizer: Any) -> None:
    first = optimizer.param_groups[0]["params"][0]
    first.grad = first.grad.t().contiguous().t()


def gradient_dropped(optimizer: Any) -> None:
    optimizer.param_groups[0]["params"][0].grad = None


def gradient_conjugated(optimizer: Any) -> None:
    first = optimizer.param_groups[0]["params"][0]
    first.grad = torch._neg_view(first.grad)


def parameter_negated(optimizer: Any) -> None:
    first = optimizer.param_groups[0]["params"][0]
    first.data = torch._neg_view(first.data)


def state_negated(optimizer: Any) -> None:
    state = optimizer.state[optimizer.param_groups[0]["params"][0]]
    state["exp_avg"] = torch._neg_view(-state["exp_avg"])


def state_turned(optimizer: Any) -> None:
    optimizer.state[optimizer.param_groups[0]["params"][0]]["exp_avg"].t_()


def parameters_swapped(optimizer: Any) -> None:
    optimizer.param_groups[0]["params"].reverse()


CHANGES = (
    *(emptied, begun_anew, one_replaced, one_tensor_replaced, memory_replaced, parameter_replaced, gradient_transposed),
    *(gradient_dropped, gradient_conjugated, parameter_negated, state_negated, state_turned, parameters_swapped),
)


@pytest.mark.parametrize("by_python", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_between_steps_is_seen(
    change: Callable[[Any], None], by_python: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_python:
        monkeypatch.setattr(watching, "look", lambda lists, kept: None)
    found = []
    for cls in (optim.AdamW, torch.optim.AdamW):
        generator = torch.Generator().manual_seed(0)
        params = [torch.randn(shape, generator=generator).requires_grad_() for shape in ((4, 4), (5,))]
        optimizer = cls(params, lr=0.1)
        for step in range(5):
            for param in params:
                param.grad = torch.randn(param.shape, generator=generator)
            if step == 3:
                change(optimizer)
            optimizer.step()
        found.append([param.detach() for param in params])
    torch.testing.assert_close(*found)


def test_steps_are_watched_without_python() -> None:
    param = torch.zeros(3, requires_grad=True)
    optimizer = optim.AdamW([param, torch.zeros(2, requires_grad=True)])
    for _ in range(2):
        param.grad = torch.ones(3)
        optimizer.step()
    assert optimizer._plan._seen == [param.grad.data_ptr()]


@pytest.mark.parametrize("name", ["exp_avg", "step"])
def test_a_graph_that_saved_a_state_is_refused_after_a_step(name: str) -> None:
    """As in eager: the value that its backward pass needs is gone."""
    param, weight = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    optimizer = optim.Adam([param])
    for _ in range(3):
        param.grad = torch.ones(2)
        optimizer.step()
        made = (weight * optimizer.state[param][name]).sum()
    made.backward()
    made = (weight * optimizer.state[param][name]).sum()
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        made.backward()


@pytest.mark.parametrize("name", ["SGD", "Adadelta"])
def test_a_conjugate_parameter_is_updated_in_its_own_memory(name: str) -> None:
    """Where PyTorch does it; others of its optimizers refuse one, which are updated here, too."""
    found = []
    for library in (optim, torch.optim):
        memory = torch.tensor([1 + 1j, 2.0, 3 - 2j])
        param = memory.conj().requires_grad_()
        optimizer = getattr(library, name)([param], lr=0.1)
        for step in range(3):
            param.grad = torch.tensor([1j, 0.5 + step, 2.0])
            optimizer.step()
        found.append(memory)
    torch.testing.assert_close(*found)


def test_conjugate_states() -> None:
    found = []
    for is_conjugate in (True, False):
        param = torch.tensor([1 + 1j, 2.0, 3 - 2j]).requires_grad_()
        optimizer = optim.Adam([param], lr=0.1)
        for step in range(3):
            param.grad = torch.tensor([1j, 0.5 + step, 2.0])
            optimizer.step()
            state = optimizer.state[param]
            if is_conjugate:
                state["exp_avg"] = state["exp_avg"].resolve_conj().conj().resolve_conj().conj()
        found.append((param, state["exp_avg"].resolve_conj()))
    torch.testing.assert_close(*found)
