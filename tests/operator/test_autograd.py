"""An operator behaves under autograd as a built-in function does."""

import copy
import threading

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import opwright
from opwright.binding.variants.variants import Variants
from tests.operator.against_eager import assert_as_eager, random
from tests.operator.operators import (
    biased,
    cube,
    half_detached,
    linear_tanh,
    lltm,
    mix,
    polar,
    ranked,
    second_only,
    shift,
    twins,
    wave,
)
from tests.suite.nights import mostly_at_night


@pytest.fixture(params=["C++", "Python"], autouse=True)
def path(request, monkeypatch):
    """Calls are recorded by a tape, or by an autograd.Function where there is none."""
    if request.param == "Python":
        hidden = property(lambda _: None, lambda variants, play: vars(variants).update(play=play))
        monkeypatch.setattr(Variants, "play", hidden, raising=False)
    return request.param


def both(operator, scenario):
    """What a scenario gives for an operator and for its reference."""
    return scenario(operator), scenario(operator.reference)


def assert_same(operator, scenario):
    torch.testing.assert_close(*both(operator, scenario))


def accumulated(function):
    x = random(4)
    for _ in range(2):
        function(x).sum().backward()
    return x.grad


def through_a_retained_non_leaf(function):
    x = random(4)
    middle = x * 3
    middle.retain_grad()
    output = function(middle)
    output.retain_grad()
    output.pow(2).sum().backward()
    return x.grad, middle.grad, output.grad


def twice_over_a_retained_graph(function):
    x = random(4)
    output = function(x).sum()
    output.backward(retain_graph=True)
    output.backward()
    return x.grad


def detached(function):
    x = random(4)
    return (function(x) * function(x).detach() + function(x.detach())).sum().backward(), x.grad


def vector_jacobian_product(function):
    x = random(4)
    return torch.autograd.functional.vjp(function, x, torch.arange(4.0))


def hessian(function):
    return torch.autograd.functional.hessian(lambda x: function(x).sum(), random(4, gradient=False))


def hooked(function):
    seen = []
    x = random(4)
    x.register_hook(lambda gradient: gradient * 2)
    output = function(x)
    output.register_hook(seen.append)
    output.sum().backward()
    return x.grad, seen[0]


def checkpointed(function):
    x = random(4)
    checkpoint(lambda t: function(function(t)), x, use_reentrant=False).sum().backward()
    return x.grad


def with_saved_tensors_hooks(function):
    x = random(4)
    with torch.autograd.graph.saved_tensors_hooks(lambda saved: saved.numpy(), torch.from_numpy):
        output = function(x)
    output.sum().backward()
    return x.grad


def in_anomaly_mode(function):
    x = random(4)
    with pytest.warns(UserWarning, match="Anomaly Detection"), torch.autograd.detect_anomaly():
        function(x).sum().backward()
    return x.grad


def output_modified_in_place(function):
    x = random(4)
    output = function(x)
    output.mul_(2)
    output.sum().backward()
    return x.grad


def batched_backward(function):
    x = random(3)
    return torch.autograd.grad(function(x), x, torch.eye(3), is_grads_batched=True)


def batched_backward_differentiated(function):
    x = random(3)
    rows = torch.autograd.grad(function(x), x, torch.eye(3), is_grads_batched=True, create_graph=True)[0]
    return rows, torch.autograd.grad(rows.sin().sum(), x) if rows.requires_grad else ()


def vectorized_hessian_differentiated(function):
    x = random(3)
    found = torch.autograd.functional.hessian(lambda t: function(t).sum(), x, create_graph=True, vectorize=True)
    return found, torch.autograd.grad(found.sin().sum(), x) if found.requires_grad else ()


SCENARIOS = [
    accumulated, through_a_retained_non_leaf, twice_over_a_retained_graph, detached, vector_jacobian_product, hessian,
    hooked, checkpointed, with_saved_tensors_hooks, in_anomaly_mode, output_modified_in_place, batched_backward,
    batched_backward_differentiated, vectorized_hessian_differentiated,
]  # fmt: skip


@pytest.mark.parametrize(
    "operator", mostly_at_night([wave, shift, cube], by_day=2), ids=lambda operator: operator.__name__
)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_a_scenario_goes_as_in_eager(scenario, operator):
    assert_same(operator, scenario)


X, Y = random(3, 4), random(3, 4, seed=1)


def test_calls_are_recorded_on_the_path_that_is_asked_for(path):
    result = wave(random(3))  # held, since the node of a custom function of PyTorch 2.11 ends with it
    assert result.grad_fn.name() == {"C++": "WaveBackward", "Python": "OperatorFunctionBackward"}[path]


MASKS = [
    (mix, (X, Y)),
    (mix, (X.detach(), Y)),
    (mix, (X, X)),
    (twins, (X,)),
    (second_only, (X.detach(), Y)),
    (half_detached, (X, True)),
    (biased, (X, None, Y)),
    (biased, (X.detach(), Y.detach(), None)),
    (linear_tanh, (X, Y)),
    (lltm, (random(3, 12), Y)),
    (mix, (X, Y.detach())),
    (mix, (X.detach(), Y.detach())),
    (polar, (X, Y)),
    (polar, (X, X)),
    (ranked, (X, Y)),
    (second_only, (X, Y)),
    (half_detached, (X, False)),
    (biased, (X, Y, None)),
    (biased, (X.detach(), None, Y.detach())),
    (biased, (X, None, None)),
]


@pytest.mark.parametrize("place", mostly_at_night(range(len(MASKS)), by_day=(0, 4, 12, 16)))
def test_every_mask_of_gradients(place):
    operator, arguments = MASKS[place]
    assert_as_eager(operator, *arguments)


@pytest.mark.parametrize("dtype", mostly_at_night([torch.float64, torch.float32], by_day=1), ids=str)
@pytest.mark.parametrize(
    ("operator", "arguments"), mostly_at_night([(cube, (X,)), (lltm, (random(3, 12), Y))], by_day=1)
)
def test_the_third_derivative(operator, arguments, dtype):
    cast = [argument.detach().to(dtype).requires_grad_() for argument in arguments]
    assert_as_eager(operator, *cast, order=3)


@pytest.mark.parametrize(
    ("operator", "arguments"),
    mostly_at_night(
        [
            (mix, (random(2, 3, dtype=torch.float64), random(3, dtype=torch.float64))),
            (cube, (random(3, dtype=torch.float64),)),
            (polar, (random(2, 2, dtype=torch.float64), random(2, 1, dtype=torch.float64))),
            (lltm, (random(2, 6, dtype=torch.float64), random(2, 2, dtype=torch.float64))),
            (linear_tanh, (random(2, 3, dtype=torch.float64), random(4, 3, dtype=torch.float64))),
        ],
        by_day=1,
    ),
)
def test_gradients_agree_with_differences(operator, arguments):
    assert gradcheck(operator, arguments)
    assert gradgradcheck(operator, arguments)


@pytest.mark.filterwarnings("ignore:Anomaly Detection", "ignore:Error detected")
def test_what_is_derived_in_anomaly_mode_is_a_kernel():
    """Anomaly mode looks for NaN in every gradient, also in those of a trace."""
    fresh = opwright.operator(lltm.reference, name="lltm_under_anomaly")
    with torch.autograd.detect_anomaly():
        hidden, _ = fresh(random(3, 12), random(3, 4, seed=1))
        assert fresh.last_rung == "cpp"
        assert torch.is_anomaly_enabled()
        assert torch.is_anomaly_check_nan_enabled()
        with pytest.raises(RuntimeError, match="returned nan values"):
            (hidden * float("nan")).sum().backward()


def test_an_unused_output_gets_no_gradient():
    assert_same(polar, lambda f: torch.autograd.grad(f(X, Y)[1].sum(), [X, Y]))
    assert_same(polar, lambda f: torch.autograd.grad(f(X, Y)[0].sum(), [X, Y], create_graph=True))


def test_outputs_that_have_no_derivative_require_none():
    product, larger, count = ranked(X, Y)
    assert (product.requires_grad, larger.requires_grad, count.requires_grad) == (True, False, False)
    assert (larger.dtype, count.dtype) == (torch.bool, torch.int64)


def message_of(action):
    with pytest.raises(RuntimeError) as raised:
        action()
    return str(raised.value)


def modify_saved(function):
    x = random(4)
    middle = x * 1
    output = function(middle)
    middle.add_(1)
    output.sum().backward()


def free_then_use(function):
    output = function(random(4)).sum()
    output.backward()
    output.backward()


def modify_leaf(function):
    x = random(4)
    function(x)
    x.add_(1)


@pytest.mark.parametrize("action", [modify_saved, free_then_use, modify_leaf], ids=lambda action: action.__name__)
def test_a_mistake_raises_as_in_eager(action):
    spoken, expected = both(wave, lambda function: message_of(lambda: action(function)))
    assert spoken[:60] == expected[:60]


def test_an_inference_tensor_cannot_be_saved():
    with torch.inference_mode():
        x = torch.ones(4)
    for function in (mix, mix.reference):
        assert "Inference tensors cannot be saved for backward" in message_of(lambda f=function: f(x, random(4)))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode], ids=lambda mode: mode.__name__)
def test_without_gradients_nothing_is_recorded(mode):
    with mode():
        output = wave(random(4))
        assert wave.last_rung == "cpp"
    assert not output.requires_grad
    assert output.is_inference() == (mode is torch.inference_mode)


def test_a_backward_under_a_mode_counts_each_argument_once():
    """There the reference of the backward operator runs, on arguments that depend on each other."""

    class Listening(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    def scenario(function):
        x = random(4)
        output = function(x, x).sum() + function(x, 2 * x).sum()
        with Listening():
            (first,) = torch.autograd.grad(output, x, create_graph=True)
        return first, *torch.autograd.grad(first.sum(), x)

    assert_same(mix, scenario)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(random(5, 4, gradient=False))
        self.operator = linear_tanh

    def forward(self, x):
        return self.operator(x, self.weight)


def test_a_module_that_holds_an_operator_is_copied_and_trained():
    layer = Layer()
    twin = copy.deepcopy(layer)
    assert twin.operator is linear_tanh
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.1)
    twin(X.detach()).sum().backward()
    optimizer.step()
    weight = layer.weight.detach().clone().requires_grad_()
    linear_tanh.reference(X.detach(), weight).sum().backward()
    torch.testing.assert_close(twin.weight, (weight - 0.1 * weight.grad))
    assert layer.weight.grad is None


def test_threads_that_come_first_at_once_get_the_same_answers():
    @opwright.operator
    def together(x: torch.Tensor) -> torch.Tensor:
        return torch.cos(x) * 3.25

    answers, expected = [], both(together, hessian)[1]
    threads = [threading.Thread(target=lambda: answers.append(hessian(together))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    for answer in answers:
        torch.testing.assert_close(answer, expected)
