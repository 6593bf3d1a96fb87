"""More tensors than PyTorch's dispatcher passes: kernels take lists."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import torch

import opwright
from opwright.errors import WheelUnsupported
from tests.suite.nights import mostly_at_night

MANY = 67


def chained(x: torch.Tensor, others: list[torch.Tensor]) -> torch.Tensor:
    """Each tensor is read, and saved for its gradient."""
    for place, other in enumerate(others):
        x = torch.sin(x) + other * x if place % 2 else x - other * other
    return x


def _given(size: int, *, gradients: bool) -> tuple[torch.Tensor, list[torch.Tensor]]:
    torch.manual_seed(0)
    tensors = [(0.1 * torch.randn(3, size)).requires_grad_(gradients) for _ in range(MANY)]
    return tensors[0], tensors[1:]


@pytest.mark.parametrize("gradients", mostly_at_night([True, False], by_day=0))
@pytest.mark.parametrize("tape", ["C++", "Python"])
def test_a_list_of_many_tensors(tape: str, gradients: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if tape == "Python":
        monkeypatch.setenv("OPWRIGHT_TAPE", "off")
    operator = opwright.operator(chained)
    for size in (4, 5):
        x, others = _given(size, gradients=gradients)
        results = [function(x, others) for function in (operator, chained)]
        torch.testing.assert_close(*results)
        if gradients:
            found, expected = (torch.autograd.grad(result.sum(), [x, *others]) for result in results)
            torch.testing.assert_close(found, expected)
        assert operator.last_rung == "cpp"


def test_calls_with_many_tensors_run_without_python_and_tell_who_requires_gradients() -> None:
    operator = opwright.operator(chained)
    masks: list[set[int]] = [set(range(MANY)), {MANY - 1}, {0}, set()]
    for size, mask in [(size, mask) for size in (4, 5) for mask in masks]:  # kernels are made in the first round
        tensors = [(0.1 * torch.randn(3, size)).requires_grad_(place in mask) for place in range(MANY)]
        operator(tensors[0], tensors[1:])
        found = operator._server._hot[0].play(tensors[0], tensors[1:])
        expected = chained(tensors[0], tensors[1:])
        torch.testing.assert_close(found, expected)
        for place in mask:
            gradients = [torch.autograd.grad(y.sum(), tensors[place], retain_graph=True) for y in (found, expected)]
            torch.testing.assert_close(*gradients)


def saves_more_than_it_takes(x: torch.Tensor, ws: list[torch.Tensor]) -> torch.Tensor:
    """40 tensors in; the backward pass reads these and what is between."""
    for w in ws:
        x = torch.tanh(x @ w)
    return x


@pytest.mark.nightly
def test_a_backward_pass_that_reads_many() -> None:
    operator = opwright.operator(saves_more_than_it_takes)
    torch.manual_seed(0)
    ws = [(0.4 * torch.randn(4, 4)).requires_grad_() for _ in range(39)]
    x = torch.randn(3, 4, requires_grad=True)
    results = [function(x, ws) for function in (operator, saves_more_than_it_takes)]
    torch.testing.assert_close(*results)
    found, expected = (torch.autograd.grad(result.sum(), [x, *ws]) for result in results)
    torch.testing.assert_close(found, expected)
    assert operator.last_rung == "cpp"


def test_functions_of_many_parameters_are_served_but_no_wheel_holds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, places = tmp_path / "written_out.py", range(MANY)
    parameters, total = ", ".join(f"x{p}: torch.Tensor" for p in places), " + ".join(f"x{p}" for p in places)
    file.write_text(f"import torch\n\n\ndef of_many_parameters({parameters}) -> torch.Tensor:\n    return {total}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    written = importlib.import_module("written_out")
    sample = opwright.Sample((torch.ones(2),) * MANY)
    operator = opwright.operator(written.of_many_parameters, samples=lambda device, dtype: [sample])
    torch.testing.assert_close(operator(*sample.args), torch.full((2,), float(MANY)))
    assert operator.last_rung == "cpp"
    with pytest.raises(WheelUnsupported, match=f"{MANY} tensors and sizes, and PyTorch passes at most 64"):
        opwright.build_wheel([operator], tmp_path)
