"""Functions over `torch::Tensor`: bound by their author, or by us."""

from __future__ import annotations

import pytest
import torch

import opwright
from opwright.errors import FunctionMissing, ImplementationRefused, Place, WrongResult
from opwright.handwritten.expected import Expected
from opwright.handwritten.passes import Recorded
from opwright.handwritten.torch_functions.passes import Names, TorchFunction, TorchPasses

pytestmark = pytest.mark.usefixtures("compiled_once")

HEAD = "#include <torch/extension.h>\n"
FORWARD = "std::vector<torch::Tensor> run(torch::Tensor x) { auto e = x.exp(); return {e * x, e}; }\n"
BACKWARD = """\
torch::Tensor pull(torch::Tensor grad_y, torch::Tensor grown, torch::Tensor x) {
  return grad_y * grown * (1 + x);
}
"""
MODULE = 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &run, "x·eˣ"); m.def("backward", &pull); }\n'
STABLE = """\
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
using torch::stable::Tensor;
namespace {
Tensor half(Tensor x) { return torch::stable::narrow(x, 0, 0, x.size(0) / 2); }
Tensor same(Tensor x) { return torch::stable::clone(x); }
}
STABLE_TORCH_LIBRARY(tests_stable, m) {
  m.def("half(Tensor x) -> Tensor");
  m.def("same(Tensor x) -> Tensor");
}
STABLE_TORCH_LIBRARY_IMPL(tests_stable, CPU, m) {
  m.impl("half", TORCH_BOX(&half));
  m.impl("same", TORCH_BOX(&same));
}
"""


def grown(x: torch.Tensor) -> torch.Tensor:
    return x * torch.exp(x)


def copied(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@pytest.mark.nightly  # against torch/extension.h: some twenty seconds of a compiler for each
@pytest.mark.parametrize("bound_by_author", [True, False])
def test_saved_tensors_reach_the_backward_pass(bound_by_author: bool) -> None:
    operator = opwright.Operator(grown, name=f"tests::grown_{bound_by_author}")
    names = ("forward", "backward") if bound_by_author else ("run", "pull")
    text = HEAD + FORWARD + BACKWARD + (MODULE if bound_by_author else "")
    operator.implement("cpp", source=text, forward=names[0], backward=names[1], saved=("grown",))
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.equal(operator(x), grown(x))
    assert operator.last_rung == "cpp"
    assert torch.autograd.gradcheck(operator.on("cpp"), (x,))
    assert torch.autograd.gradgradcheck(operator.on("cpp"), (x,))


@pytest.fixture(scope="module")
def stable() -> opwright.Operator:
    operator = opwright.Operator(copied, name="tests::copied")
    operator.implement("cpp", source=STABLE, forward="tests_stable::same")
    return operator


def test_a_registered_operator_serves(stable: opwright.Operator) -> None:
    x = torch.randn(4, 3, requires_grad=True)
    assert torch.equal(stable.on("cpp")(x), x)
    assert torch.equal(torch.autograd.grad(stable(x).sum(), x)[0], torch.ones(4, 3))  # derived


def test_a_result_of_another_size_is_told(stable: opwright.Operator) -> None:
    operator = opwright.Operator(copied, name="tests::halved")
    operator.implement("cpp", source=STABLE, forward="tests_stable::half")
    with pytest.raises(WrongResult, match=r"half returned float32\[2, 3\] as result 0, but"):
        operator(torch.randn(4, 3))


def test_an_operator_that_is_not_registered_is_told(stable: opwright.Operator) -> None:
    operator = opwright.Operator(copied, name="tests::nothing")
    operator.implement("cpp", source=STABLE, forward="tests_stable::nothing")
    with pytest.raises(FunctionMissing, match="registers no operator tests_stable::nothing"):
        operator(torch.randn(4, 3))


def test_what_is_registered_otherwise_is_refused(stable: opwright.Operator) -> None:
    """Registering an operator twice would end the process."""
    assert torch.equal(stable(torch.ones(2, 2)), torch.ones(2, 2))
    operator = opwright.Operator(copied, name="tests::again")
    operator.implement("cpp", source=STABLE + "// edited\n", forward="tests_stable::same")
    with pytest.raises(ImplementationRefused, match="another source has already registered tests_stable::half"):
        operator(torch.randn(4, 3))


class Bound:
    """Functions in Python in place of built ones."""

    def function(self, name: str) -> TorchFunction:
        called = {
            "forward": lambda x: [x * x.exp(), x.exp()],
            "backward": lambda grad_y, grown, x: grad_y * grown * (1 + x),
        }
        parameters = {"forward": ("x",), "backward": ("grad_y", "grown", "x")}
        return TorchFunction(name, Place("bound.cpp", 1), parameters[name], called[name])

    def examine(self) -> None:
        """They are there."""


@pytest.mark.parametrize("results", [(), ("y",)])
def test_what_is_saved_is_told_from_results(results: tuple[str, ...]) -> None:
    passes = TorchPasses(Bound(), "forward", "backward", Names(("x",), results, ("grown",), ("x",)), dtypes=())
    x = torch.randn(3, dtype=torch.float64)
    made = passes.forward((x,), Expected(grown)((x,)), recording=True)
    described = [(tuple(output.shape), output.dtype) for output in made.outputs]
    found = passes.backward(Recorded((x,), made.kept, described, None, (torch.ones_like(x),), (0,)))
    torch.testing.assert_close(found[0], x.exp() * (1 + x))
