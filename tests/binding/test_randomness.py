"""Compilers see the draws of random operators, so that gradients belong to them and no two calls become one."""

import pytest
import torch
from functorch.compile import min_cut_rematerialization_partition
from torch import Tensor
from torch._dynamo.backends.common import aot_autograd
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional

import opwright
from tests.suite.nights import mostly_at_night

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # the compiler's own
    pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning"),
]

X = torch.linspace(0.5, 1.5, 24).reshape(4, 6)


@opwright.operator
def dropped_sine(x: Tensor) -> Tensor:
    return functional.dropout(torch.sin(x), 0.5)


@opwright.operator
def dropped_within(x: Tensor) -> Tensor:
    return dropped_sine(x) * x


@opwright.operator
def dropped_in_training(x: Tensor, training: bool = False) -> Tensor:
    return functional.dropout(torch.sin(x), 0.5, training)


@opwright.operator
def noisy_steps(x: Tensor) -> tuple[Tensor, Tensor]:
    noise = torch.randn_like(x)
    return x * noise, noise


def uncompiled(module, _):
    return module


BACKENDS = {
    "as it is": "aot_eager",
    "recomputing": aot_autograd(
        fw_compiler=uncompiled, bw_compiler=uncompiled, partition_fn=min_cut_rematerialization_partition
    ),
}


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def step(function):
    """A result, its gradient, and what is drawn next."""
    torch.manual_seed(3)
    leaf = X.clone().requires_grad_()
    result = function(leaf)
    between = torch.rand(2)
    (gradient,) = torch.autograd.grad((result * result).sum(), leaf)
    return result.detach(), gradient, between, torch.rand(2)


STEPS = {
    "alone": (dropped_sine, lambda f: f),
    "within": (dropped_within, lambda f: f),
    "twice": (dropped_sine, lambda f: lambda x: f(x * 2) * x + f(x * 2)),
    "with its noise": (noisy_steps, lambda f: lambda x: f(x)[0] * f(x)[1]),
    "at times": (dropped_in_training, lambda f: lambda x: f(x) + f(x, True)),
}
BY_DAY = [("recomputing", step) for step in ("within", "with its noise")]


@pytest.mark.parametrize(
    ("backend", "case"), mostly_at_night([(backend, step) for backend in BACKENDS for step in STEPS], by_day=BY_DAY)
)
def test_a_training_step_that_is_compiled(backend, case):
    operator, function = STEPS[case]
    compiled, reference = (
        torch.compile(function(candidate), fullgraph=True, backend=BACKENDS[backend])
        for candidate in (operator, operator.reference)
    )
    for _ in range(2):
        torch.testing.assert_close(step(compiled), step(reference))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_two_calls_without_gradients_are_two(mode, backend):
    compiled = torch.compile(lambda x: dropped_sine(x) - dropped_sine(x), fullgraph=True, backend=BACKENDS[backend])
    with mode():
        assert compiled(X).count_nonzero() > 0


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_a_graph_of_gradients(mode):
    @opwright.operator(name=f"opwright::dropped_{mode}")
    def dropped_anew(x: Tensor) -> Tensor:
        return functional.dropout(torch.sin(x), 0.5)

    def gradient(function, x):
        leaf = x.detach().requires_grad_()
        return torch.autograd.grad(function(leaf).sum(), leaf)[0]

    graph = make_fx(lambda x: gradient(dropped_anew, x), tracing_mode=mode)(X)
    assert "dropped" not in graph.code
    torch.manual_seed(0)
    found = graph(X)
    torch.manual_seed(0)
    torch.testing.assert_close(found, gradient(dropped_anew.reference, X))


def test_an_operator_that_draws_nothing_any_more_is_one_operation_again():
    def compiled_to(function):
        names = []

        def look(module, _):
            names.extend(str(node.target) for node in module.graph.nodes if node.op == "call_function")
            return module

        torch._dynamo.reset()
        torch.compile(function, fullgraph=True, backend=aot_autograd(fw_compiler=look, bw_compiler=look))(X)
        return names

    def halved(x: Tensor) -> Tensor:
        return functional.dropout(torch.sin(x), 0.5)

    def sine(x: Tensor) -> Tensor:
        return torch.sin(x) * 2

    name = "opwright::drawing_at_first"
    assert "opwright.drawing_at_first.default" not in compiled_to(opwright.operator(name=name)(halved))
    assert "opwright.drawing_at_first.default" in compiled_to(opwright.operator(name=name)(sine))


@pytest.mark.parametrize("function", [dropped_sine, dropped_within])
def test_an_exported_program_is_trained(function):
    class Module(torch.nn.Module):
        def forward(self, x):
            return function(x)

    exported = torch.export.export(Module(), (X,))
    for program in (exported.module(), exported.run_decompositions({}).module()):
        result, gradient, *_ = step(program)
        assert torch.equal(gradient == 0, result == 0)


def test_tensors_without_data_where_nobody_records():
    for _ in range(2):
        with FakeTensorMode() as mode:
            assert dropped_sine(mode.from_tensor(X).t()).stride() == (1, X.shape[1])
        assert dropped_sine(X.to("meta")).is_meta
