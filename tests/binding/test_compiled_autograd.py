"""Compiled autograd puts the backward pass of a tape's node into its graph, as an operator."""

import pytest
import torch
from torch._dynamo import compiled_autograd
from torch._dynamo.backends.common import aot_autograd

import opwright
from tests.suite.nights import mostly_at_night

pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # compiled autograd looks at it


@opwright.operator
def layer(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x @ weight) + bias


@opwright.operator
def two(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tanh(x * y), torch.sin(x) + y


@opwright.operator
def unseen(x: torch.Tensor) -> torch.Tensor:
    return torch.exp(x) * x


OURS, THEIRS = (layer, two), (layer.reference, two.reference)


def inputs(batch):
    torch.manual_seed(batch)
    return [torch.randn(*sizes, requires_grad=True) for sizes in ((batch, 4), (4, 3), (3,))]


def all_gradients(functions, batch):
    first, second = functions
    leaves = inputs(batch)
    p, q = second(first(*leaves), leaves[2])
    (p.sum() + q.square().mean()).backward()
    return [leaf.grad for leaf in leaves]


def one_gradient(functions, batch):
    first, second = functions
    x, weight, bias = inputs(batch)
    p, _ = second(first(x, weight, bias), bias)  # the other output has no cotangent
    return torch.autograd.grad(p.square().sum(), weight)


def gradients_through_hooks(functions, batch):
    with torch.autograd.graph.saved_tensors_hooks(torch.clone, torch.clone):
        leaves = inputs(batch)
        loss = functions[0](*leaves).sum()
    loss.backward()
    return [leaf.grad for leaf in leaves]


def under_compiled_autograd(step, batches):
    """What the step gives for each batch, and the operations of all graphs."""
    operations = []

    def backend(graph, _):
        operations.append({str(node.target) for node in graph.graph.nodes})
        return graph.forward

    torch._dynamo.reset()
    try:
        compiler = torch.compile(backend=aot_autograd(fw_compiler=backend), fullgraph=True)
        with compiled_autograd._enable(compiler):
            return [step(OURS, batch) for batch in batches], operations
    finally:
        torch._dynamo.reset()


@pytest.fixture(autouse=True, scope="module")
def tapes():
    all_gradients(OURS, 2)
    assert all(operator._variants.now().play for operator in OURS)


@pytest.mark.parametrize("step", mostly_at_night([gradients_through_hooks, one_gradient, all_gradients], by_day=1))
def test_it_gives_the_gradients_and_compiles_no_more_than_twice(step):
    batches = (2, 5, 3)
    found, graphs = under_compiled_autograd(step, batches)
    for batch, gradients in zip(batches, found, strict=True):
        torch.testing.assert_close(gradients, step(THEIRS, batch))
    assert len(graphs) <= 2  # for the first sizes, and for all others


def test_the_gradients_asked_for_are_operators_in_the_graph():
    _, graphs = under_compiled_autograd(one_gradient, (2,))
    assert {"opwright.layer_backward_weight.default", "opwright.two_backward_x_of_0.default"} <= graphs[0]


def test_nothing_of_a_derivation_is_compiled():
    with compiled_autograd._enable(lambda _: pytest.fail("a trace came to the compiler")):
        unseen(torch.ones(3, requires_grad=True))
    assert unseen.last_rung == "cpp"


@opwright.operator
def scaled_in_compiled(x: torch.Tensor, k: float, *, flag: bool = True) -> dict[str, torch.Tensor]:
    return {"product": torch.tanh(x * k) if flag else torch.sin(x * k)}


@opwright.operator
def noisy_in_compiled(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * torch.rand_like(x)


def gradient(function, *args, **kwargs):
    x = torch.linspace(-1, 1, 5, requires_grad=True)
    result = function(x, *args, **kwargs)
    return torch.autograd.grad((result["product"] if isinstance(result, dict) else result).square().sum(), x)


def test_constants_are_in_the_graph():
    for flag in (True, False):
        gradient(scaled_in_compiled, 2.0, flag=flag)
    backend = torch.compile(backend="eager", fullgraph=True)
    for flag in (True, False, True):
        with compiled_autograd._enable(backend):
            found = gradient(scaled_in_compiled, 2.0, flag=flag)
        torch.testing.assert_close(found, gradient(scaled_in_compiled.reference, 2.0, flag=flag))


def test_numbers_that_change_break_the_graph():
    for value in (1.0, 3.0):
        gradient(scaled_in_compiled, value)
    for value in (3.0, 4.0, 5.0):
        with compiled_autograd._enable(torch.compile(backend="eager")):
            found = gradient(scaled_in_compiled, value)
        torch.testing.assert_close(found, gradient(scaled_in_compiled.reference, value))


def test_random_numbers_are_drawn_again_outside_of_the_graph():
    gradient(noisy_in_compiled)
    for seed in range(3):
        torch.manual_seed(seed)
        with compiled_autograd._enable(torch.compile(backend="eager")):
            found = gradient(noisy_in_compiled)
        torch.manual_seed(seed)
        torch.testing.assert_close(found, gradient(noisy_in_compiled.reference))
