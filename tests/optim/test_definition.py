"""Definitions that are refused, and those that need more than one way."""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from typing import Any

import pytest
import torch

import opwright
from opwright.errors import UpdateRefused
from opwright.optim.serving.variants import MOST_VARIANTS
from tests.optim.trained import assert_same, parameters, train

STATED = """
def {name}(param, grad, average, step, *, lr=0.1):
    {body}
"""


def made(body: str) -> Any:
    """An optimizer of a definition with one state."""
    from opwright.toolchain.modules import module_of_text

    text = STATED.format(name="Bad", body=body)
    return opwright.optimizer(state=("average",))(module_of_text("<bad>", "import torch\n" + text).Bad)


@pytest.mark.parametrize(("body", "fact", "hint"), [
    ("return param - lr * grad", "Bad returns 1 values, not 2", "return param, average"),
    ("return param, average, grad", "Bad returns 3 values, not 2", "return param, average"),
    ("return param - lr * grad, None", "Bad returns None as the new 'average'", "a tensor for each state"),
    ("return (param - lr * grad).sum(), average", "Bad returns a new 'param' of shape", "of the shapes"),
    ("return param - lr * grad, average.sum()", "Bad returns a new 'average' of shape ()", "of the shapes"),
    ("return param.sub_(lr * grad), average", "Bad changes 'param' in place", "return it"),
    ("average.mul_(0.5); return param - lr * grad, average", "Bad changes 'average' in place", "return it"),
    ("return (param if grad.sum() > 1 else param - grad), average", "looks at the values of a tensor", "torch.where"),
    ("return param * grad.norm().item(), average", "Bad looks at the values of a tensor", "torch.where"),
])  # fmt: skip
def test_bad_updates_are_refused_where_they_stand(body: str, fact: str, hint: str) -> None:
    with pytest.raises(UpdateRefused) as refused:
        made(body)(parameters())
    assert fact in str(refused.value)
    assert hint in refused.value.hint
    assert refused.value.place.file == "<bad>"
    assert refused.value.place.line in (3, 4)


def no_state(param: Any, grad: Any, step: Any) -> Any:
    return param


def no_step(param: Any, grad: Any, average: Any) -> Any:
    return param, average


def any_hyper(param: Any, grad: Any, step: Any, **hyper: Any) -> Any:
    return param


def own_maximize(param: Any, grad: Any, step: Any, *, maximize: bool = False) -> Any:
    return param + grad if maximize else param - grad


def own_master(param: Any, grad: Any, master: Any, step: Any) -> Any:
    return param - grad, master + grad


def own_factor(param: Any, grad: Any, step: Any, *, grad_factor: float = 3.0) -> Any:
    return param - grad_factor * grad


@pytest.mark.parametrize(("function", "options", "fact"), [
    (no_state, {"state": ("average",)}, "no_state takes (param, grad, step), and its states are (average)"),
    (no_step, {"state": ("average",)}, "no_step takes (param, grad, average)"),
    (any_hyper, {}, "any_hyper takes 'hyper', which has no name in a parameter group"),
    (no_state, {"state": "average"}, "state='average' is a string"),
    (no_state, {"constants": ("lr",)}, "no_state has no hyper-parameter 'lr'"),
    (no_state, {"restarts": ("buffer",)}, "no_state has no state 'buffer', which restarts= names"),
    (own_maximize, {}, "own_maximize takes 'maximize', and every optimizer has an option of that name"),
    (own_master, {"state": ("master",)}, "own_master takes 'master', and the float32 copy"),
    (own_factor, {}, "own_factor takes 'grad_factor', and the factor of clipped and scaled gradients"),
])  # fmt: skip
def test_bad_signatures_are_refused(function: Any, options: dict[str, Any], fact: str) -> None:
    with pytest.raises(UpdateRefused, match=re.escape(fact)):
        opwright.optimizer(**options)(function)


def of_two(param: Any, grad: Any, step: Any, *, betas: Any = (0.5, 0.9), betas_0: float = 7.0) -> Any:
    return param - betas[0] * betas_0 * grad


def of_a_state(param: Any, grad: Any, betas_1: Any, step: Any, *, betas: Any = (0.5, 0.9)) -> Any:
    return param - betas[1] * grad, betas_1 + grad


@pytest.mark.parametrize(("function", "states", "name"), [
    (of_two, (), "betas_0"), (of_a_state, ("betas_1",), "betas_1"),
])  # fmt: skip
def test_names_of_members_of_a_tuple_are_taken(function: Any, states: tuple[str, ...], name: str) -> None:
    with pytest.raises(UpdateRefused, match=f"takes '{name}', which is what the member . of 'betas' is called"):
        opwright.optimizer(state=states)(function)([torch.ones(3, requires_grad=True)])


def test_a_first_value_that_is_no_tensor_is_refused() -> None:
    @opwright.optimizer(state={"average": lambda param, **_: 0.0})
    def starts_wrong(param: Any, grad: Any, average: Any, step: Any) -> Any:
        return param, average

    with pytest.raises(UpdateRefused, match="the first value of the state 'average' is float, not a tensor"):
        starts_wrong(parameters())


@opwright.optimizer()
def BySteps(param: Any, grad: Any, step: Any, *, lr: float = 0.1) -> Any:
    return param - lr * grad if step > 3 else param + lr * grad


def test_branches_on_numbers_are_followed_at_each_step() -> None:
    param = torch.zeros(5, requires_grad=True)
    optimizer = BySteps([param], lr=1.0)
    param.grad = torch.ones(5)
    seen = []
    for _ in range(6):
        optimizer.step()
        seen.append(param[0].item())
    assert seen == [1, 2, 3, 2, 1, 0]
    assert BySteps.variants.built == 2


def test_parameters_at_different_steps_go_different_ways() -> None:
    early, late = torch.zeros(5, requires_grad=True), torch.zeros(5, requires_grad=True)
    optimizer = BySteps([early, late], lr=1.0)
    early.grad = torch.ones(5)
    for _ in range(3):
        optimizer.step()
    late.grad = torch.ones(5)
    optimizer.step()
    assert (early[0], late[0]) == (2, 1)


@opwright.optimizer()
def ByShape(param: Any, grad: Any, step: Any, *, lr: float = 0.1) -> Any:
    if param.ndim == 1:
        return param - lr * grad
    return param - 2 * lr * grad if param.shape[0] == param.shape[1] else param - 3 * lr * grad


def test_a_shape_that_decides_is_asked_for_every_parameter() -> None:
    params = [torch.zeros(shape, requires_grad=True) for shape in ((5,), (4, 4), (4, 5), (1, 1), (1, 4))]
    optimizer = ByShape(params, lr=1.0)
    for param in params:
        param.grad = torch.ones_like(param)
    optimizer.step()
    assert [param.flatten()[0].item() for param in params] == [-1, -2, -3, -2, -3]


@opwright.optimizer()
def Divides(param: Any, grad: Any, step: Any, *, lr: float = 0.1, by: float = 2.0) -> Any:
    return param - lr / by * grad


def test_python_raises_what_it_raises() -> None:
    param = torch.zeros(5, requires_grad=True)
    optimizer = Divides([param])
    param.grad = torch.ones(5)
    optimizer.step()
    optimizer.param_groups[0]["by"] = 0.0
    with pytest.raises(ZeroDivisionError):
        optimizer.step()


@opwright.optimizer(state=("average",))
def Centred(param: Any, grad: Any, average: Any, step: Any, *, lr: float = 0.1) -> Any:
    average = average + grad.mean()
    return param - lr * (grad - grad.mean()) / (1 - 0.5**step), average


def test_updates_that_reduce() -> None:
    params = parameters(((7, 5), (3,), ()))
    before = [param.detach().clone() for param in params]
    train(Centred(params), 1)
    for param, old in zip(params, before, strict=True):
        grad = param.grad
        torch.testing.assert_close(param.detach(), old - 0.1 * (grad - grad.mean()) / 0.5)


@opwright.optimizer(state=("average",))
def Standardized(param: Any, grad: Any, average: Any, step: Any, *, lr: float = 0.1) -> Any:
    """Three passes over a tensor: each needs what the one before reduces."""
    centred = grad - grad.mean()
    scaled = centred / (centred.square().mean().sqrt() + 1e-6)
    return param - lr * scaled / (1 + scaled.abs().amax()), average + scaled


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_updates_that_reduce_run_as_one_kernel_for_all_parameters(dtype: torch.dtype) -> None:
    shapes = ((7, 5), (3,), (130, 101), (2, 1, 4), (4096,))
    params, exact = parameters(shapes, dtype), parameters(shapes, torch.float64)
    for param, other in zip(params, exact, strict=True):
        other.data.copy_(param.detach())
    optimizer = Standardized(params)
    for count in range(3):
        generator = torch.Generator().manual_seed(count)
        for param, other in zip(params, exact, strict=True):
            param.grad = torch.randn(param.shape, generator=generator).to(dtype)
            other.grad = param.grad.double()
        optimizer.step()
        for other in exact:
            new = Standardized.functional([other.detach()], [other.grad], None, 1)[0][0]
            other.data.copy_(new)
    for param, other in zip(params, exact, strict=True):
        tolerance = 4e-2 if dtype is torch.bfloat16 else 1e-5
        torch.testing.assert_close(param.detach().double(), other.detach(), rtol=tolerance, atol=tolerance)
    kinds = [variants for kind, variants in Standardized.variants.all() if kind.param is dtype]
    assert kinds
    assert all(not variant.one_by_one for variants in kinds for variant in variants)


def test_sums_over_a_tensor_do_not_depend_on_threads() -> None:
    threads = torch.get_num_threads()
    made = []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            made.append(train(Standardized(parameters(((300, 301), (5000,), (7,)))), 2))
    finally:
        torch.set_num_threads(threads)
    assert_same(made[0], made[1])
    assert_same(made[0], made[2])


SCALE = 1.0


@opwright.optimizer()
def Scaled(param: Any, grad: Any, step: Any) -> Any:
    return param - SCALE * grad


def test_values_from_outside_are_read_at_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    param = torch.zeros(5, requires_grad=True)
    optimizer = Scaled([param])
    param.grad = torch.ones(5)
    optimizer.step()
    monkeypatch.setattr("tests.optim.test_definition.SCALE", 3.0)
    optimizer.step()
    assert param[0] == -4


@opwright.optimizer()
def Known(param: Any, grad: Any, step: Any, *, lr: float = 0.1) -> Any:
    return param - float(lr * 0.5**step) * grad


@pytest.mark.falls_back
def test_a_number_that_must_be_known_is_left_to_the_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPWRIGHT_STRICT", "")
    loose = opwright.optimizer()(Known.definition.function)
    param = torch.zeros(4, requires_grad=True)
    optimizer = loose([param], lr=1.0)
    param.grad = torch.ones(4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        optimizer.step()
        optimizer.step()
    torch.testing.assert_close(param.detach(), torch.full((4,), -0.75))
    assert [each.category for each in caught] == [opwright.FallbackWarning]


@opwright.optimizer()
def Restless(param: Any, grad: Any, step: Any, *, lr: float = 0.1) -> Any:
    return param - lr * grad * (1.0 if step == 1 else 2.0 if step == 2 else 3.0 if step == 3 else 4.0 if step == 4
                                else 5.0 if step == 5 else 6.0 if step == 6 else 7.0 if step == 7 else 8.0 if step == 8
                                else 9.0 if step == 9 else 10.0)  # fmt: skip


@pytest.mark.falls_back
def test_kernels_for_branches_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPWRIGHT_STRICT", "")
    restless = opwright.optimizer()(Restless.definition.function)
    param = torch.zeros(4, requires_grad=True)
    optimizer = restless([param], lr=1.0)
    param.grad = torch.ones(4)
    for _ in range(10):
        optimizer.step()
    assert param[0] == -sum(range(1, 11))
    assert restless.variants.built == MOST_VARIANTS


MOST_LINES = 15


@pytest.mark.parametrize("name", sorted(set(opwright.optim.__all__) - {"DerivedOptimizer"}))
def test_ready_optimizers_are_short(name: str) -> None:
    """The statements of a definition, without its signature and its docstring."""
    function = getattr(opwright.optim, name).definition.function
    (tree,) = ast.parse(inspect.getsource(function)).body
    assert isinstance(tree, ast.FunctionDef)
    assert ast.get_docstring(tree), "it cites where it comes from"
    body = tree.body[1:]
    assert body[-1].end_lineno - body[0].lineno < MOST_LINES


@pytest.mark.falls_back
def test_what_an_update_changes_outside_is_changed_once_a_step() -> None:
    seen: list[float] = []

    @opwright.optimizer()
    def Telling(param, grad, step, *, lr=0.1):
        seen.append(step)
        return param - lr * grad

    (parameter,) = tensors = [torch.ones(4, requires_grad=True)]
    optimizer = Telling(tensors)
    assert seen == []
    parameter.grad = torch.ones(4)
    with pytest.warns(opwright.errors.FallbackWarning, match="Telling changes seen, which is made outside of it"):
        optimizer.step()
    for _ in range(3):
        optimizer.step()
    assert seen == [1.0, 2.0, 3.0, 4.0]
    torch.testing.assert_close(parameter.detach(), torch.full((4,), 0.6))
