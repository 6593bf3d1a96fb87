"""A model as a program: its operators are calls, with their numbers as attributes; what cannot leave is refused."""

import re

import pytest
import torch
from torch import nn

import opwright
from opwright.deployment.programs.export import export
from opwright.errors import DeploymentUnsupported
from tests.deployment.models import gated, made, normalised_error
from tests.suite.nights import mostly_at_night


def test_operators_are_calls_with_numbers_as_attributes():
    exported = export(*made("numbers"))
    assert [call.operator.name for call in exported.calls] == ["deployed::stretched"] * 2
    assert [call.attributes for call in exported.calls] == [{"power": 2, "slope": 0.25}, {"power": 3, "slope": 0.5}]
    assert [operator.name for operator in exported.operators] == ["deployed::stretched"]
    assert exported.name == "withnumbers"


def test_sizes_that_change_are_tried_at_one():
    exported = export(*made("dynamic"))
    assert exported.is_dynamic
    (call,) = exported.calls
    assert call.arguments[0].shape == (5, 48)
    assert [other[0].shape for other in call.others] == [(1, 48)]


def test_what_is_expected_is_eagers():
    model, args, _ = made("two")
    exported = export(model, args)
    eager = gated.reference(*args) * normalised_error.reference(*[a.double() for a in args]).float()[..., None]
    assert torch.equal(exported.expected[0], eager)
    assert 0 < exported.allowed[0] < 1e-4


@pytest.mark.parametrize(
    ("name", "operators"),
    [
        ("forces", ["deployed::gated", "deployed::gated_backward_x_gate"]),
        ("mapped", ["deployed::gated"]),
    ],
)
def test_gradients_are_operators_and_transforms_operations(name, operators):
    exported = export(*made(name))
    assert [call.operator.name for call in exported.calls] == operators
    found = exported.program.module()(*exported.inputs)
    torch.testing.assert_close(found.detach(), exported.expected[0])


def test_a_model_is_not_changed():
    model = Counting()
    with pytest.raises(DeploymentUnsupported):
        export(model, (torch.ones(2),))
    assert model.calls == 0


def test_a_function_and_a_module_with_kernels_are_exported_too():
    model, (x,), shapes = made("dynamic")
    for other in (lambda x: model(x), opwright.module(model)):
        exported = export(other, (x,), shapes)
        assert [call.operator.name for call in exported.calls] == ["deployed::gated"]
        assert exported.is_dynamic


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return x


def foreign(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.deployed_by_others.halved(x)


def depends_on_values(x: torch.Tensor) -> torch.Tensor:
    return x if x.sum() > 0 else -x


@pytest.fixture(scope="module")
def _foreign_operator():
    library = torch.library.Library("deployed_by_others", "DEF")
    library.define("halved(Tensor x) -> Tensor")
    library.impl("halved", lambda x: x / 2, "CompositeExplicitAutograd")
    torch.library.register_fake("deployed_by_others::halved", torch.empty_like, lib=library)
    yield
    library._destroy()


class InPython(nn.Module):
    """A state that no tensor holds."""

    calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls


def normed() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))


def differentiated(x: torch.Tensor) -> torch.Tensor:
    return torch.func.grad(lambda x: gated(x, x).sum())(x)


REFUSED = {
    "batch norm": (normed(), (torch.randn(3, 4),), "the model changes 1.running_mean"),
    "dropout": (nn.Dropout(0.5), (torch.randn(30, 4),), "returns something else when it is called again"),
    "state": (InPython(), (torch.randn(3, 4),), "returns something else when it is called again"),
    "torch.func.grad": (differentiated, (torch.randn(3, 4),), "torch.export makes a program .* does not run"),
    "fails": (nn.Linear(3, 4), (torch.randn(5),), "the model fails for the example arguments: RuntimeError"),
    "numbers": (lambda x, n: x * n, (torch.ones(2), 3), "one of the example arguments is 3"),
    "no tuple": (lambda x: x, torch.ones(2), "the example arguments are of type Tensor"),
    "changes": (Counting(), (torch.ones(2),), "the model changes calls"),
    "foreign": (foreign, (torch.ones(2),), "test_export.py:.*calls deployed_by_others::halved"),
    "values": (depends_on_values, (torch.ones(2),), "test_export.py:.*torch.export makes no program"),
    "returns": (lambda x: (x, 3), (torch.ones(2),), "the model returns 3"),
}


@pytest.mark.usefixtures("_foreign_operator")
@pytest.mark.parametrize("name", mostly_at_night(REFUSED, by_day=[*REFUSED][::2]))
def test_what_cannot_leave_is_refused_in_one_sentence(name):
    model, args, sentence = REFUSED[name]
    with pytest.raises(DeploymentUnsupported) as refused:
        export(model, args)
    fact, _, hint = str(refused.value).partition("\nhint: ")
    assert re.search(sentence, fact)
    assert "\n" not in fact
    assert hint
