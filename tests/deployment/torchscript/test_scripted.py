"""Models that are TorchScript already leave as they are, control flow included."""

import subprocess
import sys

import pytest
import torch
from torch import Tensor, nn

import opwright
from opwright.deployment.programs.export import export
from opwright.deployment.runner.running import run_program
from opwright.errors import DeploymentUnsupported
from tests.deployment.models import gated, stretched

pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:`torch.jit:FutureWarning"),
]
_X = torch.linspace(-2, 1, 12).reshape(3, 4)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return gated(self.linear(x), x) * 2


class Deciding(nn.Module):
    """As many steps as a value says, and a branch on another."""

    def __init__(self):
        super().__init__()
        self.step = Step()

    def forward(self, x, count):
        for _ in range(int(count)):
            x = self.step(x)
        if bool(x.sum() > 100):
            return x
        return stretched(x, 2, 0.5)


def deciding():
    torch.manual_seed(0)
    return torch.jit.script(Deciding().eval())


def doubled(x: Tensor):
    return gated(x, x) * 2


def test_its_calls_are_found_with_their_arguments():
    exported = export(deciding(), (_X, torch.tensor(2)), {"x": {0: torch.export.Dim("batch")}}, keeps_scripts=True)
    found = [(call.operator.name, tuple(call.arguments[0].shape)) for call in exported.calls]
    operators = ("deployed::gated", "deployed::stretched")
    assert found == [(name, shape) for shape in ((3, 4), (1, 4)) for name in operators]
    assert exported.name == "deciding"


def test_for_other_formats_it_is_converted():
    exported = export(torch.jit.script(doubled), (_X,), ({0: torch.export.Dim("batch")},))
    assert exported.name == "doubled"
    assert exported.script is None
    assert [call.operator.name for call in exported.calls] == ["deployed::gated"]
    assert exported.is_dynamic


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return x


class Listing(nn.Module):
    def forward(self, x):
        return [x, x]


class Elsewhere(nn.Module):
    def forward(self, x):
        return gated(x, x) if bool(x.sum() > 1e9) else x


REFUSED = {
    "changes": (Counting, True, "the model changes calls in its forward"),
    "returns": (Listing, True, "takes or returns a list"),
    "elsewhere": (Elsewhere, True, "test_scripted.py:.*calls deployed::gated only for other arguments"),
    "branch": (Elsewhere, False, "in a branch or a loop of torch.cond"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_leave_is_refused_in_one_sentence(name):
    make, keeps, sentence = REFUSED[name]
    with pytest.raises(DeploymentUnsupported, match=sentence) as refused:
        export(torch.jit.script(make()), (_X,), keeps_scripts=keeps)
    assert refused.value.hint


def test_loops_over_values_are_for_torchscript_alone():
    with pytest.raises(DeploymentUnsupported, match="does not convert the scripted model") as refused:
        export(deciding(), (_X, torch.tensor(2)))
    assert "torchscript" in refused.value.hint


_IN_PYTHON = """
import sys
import torch
folder, library = sys.argv[1:]
torch.ops.load_library(f"{folder}/{library}")
model = torch.jit.load(f"{folder}/model.ts")
inputs, expected = (torch.load(f"{folder}/{name}.pt", weights_only=True) for name in ("inputs", "expected"))
torch.testing.assert_close(model(*inputs), expected[0])
x = inputs[0].requires_grad_()
model(x, inputs[1]).sum().backward()
assert x.grad is not None and model.step.linear.weight.grad is not None
assert "opwright" not in sys.modules
"""


@pytest.mark.nightly
@pytest.mark.seconds(120)
def test_control_flow_runs_in_cpp_and_in_python(tmp_path):
    model = deciding()
    written = opwright.deploy(
        model, (_X, torch.tensor(2)), to="torchscript", at=tmp_path / "out",
        dynamic_shapes={"x": {0: torch.export.Dim("batch")}},
    )  # fmt: skip
    assert written.check().passed
    for count, rows in ((0, 1), (5, 7), (9, 3)):
        x = torch.randn(rows, 4).exp() * 3
        torch.save([x, torch.tensor(count)], tmp_path / "in.pt")
        run_program(written.path, [str(tmp_path / "in.pt"), str(tmp_path / "out.pt")])
        (found,) = torch.load(tmp_path / "out.pt", weights_only=True)
        torch.testing.assert_close(found, model(x, torch.tensor(count)).detach(), rtol=1e-4, atol=1e-5)
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _IN_PYTHON, str(written.path), "libdeciding.so"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr


@pytest.mark.nightly
@pytest.mark.seconds(120)
@pytest.mark.parametrize("to", ["aoti", "torchscript", "onnx"])
def test_a_scripted_function_leaves_in_every_format(tmp_path, to):
    shapes = ({0: torch.export.Dim("batch")},)
    assert (
        opwright.deploy(torch.jit.script(doubled), (_X,), to=to, at=tmp_path / "out", dynamic_shapes=shapes)
        .check()
        .passed
    )
