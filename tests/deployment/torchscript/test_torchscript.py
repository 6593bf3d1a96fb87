"""TorchScript: in Python without opwright, and in C++."""

import subprocess
import sys

import pytest
import torch
from torch import nn

import opwright
from opwright.errors import DeploymentUnsupported
from tests.deployment.models import MODELS, made

_IN_PYTHON = """
import sys, warnings
import torch
warnings.simplefilter("ignore")
folder, library = sys.argv[1:]
torch.ops.load_library(f"{folder}/{library}")
model = torch.jit.load(f"{folder}/model.ts")
inputs, expected = (torch.load(f"{folder}/{name}.pt", weights_only=True) for name in ("inputs", "expected"))
torch.testing.assert_close(model(*inputs), expected[0])
given = [torch.cat([each, each]).requires_grad_() for each in inputs]
model(*given).sum().backward()
assert all(each.grad is not None for each in given)
assert model(inputs[0][:0]).shape == (0, 24)
wide = model.double()([each.double() for each in inputs][0])  # a dtype that was not built
torch.testing.assert_close(wide.float(), expected[0])
assert "opwright" not in sys.modules
"""


@pytest.mark.nightly
@pytest.mark.seconds(120)  # where the library is not in the cache
def test_python_loads_it_without_opwright(tmp_path):
    model, args, shapes = made("dynamic")
    written = opwright.deploy(model, args, to="torchscript", at=tmp_path / "out", dynamic_shapes=shapes)
    assert set(written.files) == {
        "CMakeLists.txt", "README.md", "deployment.json", "expected.pt", "inputs.pt", "libgatedmlp.so", "main.cpp",
        "model.ts",
    }  # fmt: skip
    ran = subprocess.run(
        [sys.executable, "-c", _IN_PYTHON, str(written.path), "libgatedmlp.so"], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr


class Sorted(nn.Module):
    def forward(self, x):
        with torch.no_grad():
            return x.sort().values


def test_what_torchscript_has_no_word_for_is_refused(tmp_path):
    with pytest.raises(DeploymentUnsupported, match="TorchScript has no word for") as refused:
        opwright.deploy(Sorted(), (torch.ones(3, requires_grad=True),), to="torchscript", at=tmp_path / "out")
    assert refused.value.hint
    assert not list(tmp_path.iterdir())


@pytest.mark.nightly
@pytest.mark.parametrize("name", MODELS)
def test_every_model_runs_in_cpp(tmp_path, name):
    model, args, shapes = made(name)
    written = opwright.deploy(model, args, to="torchscript", at=tmp_path / "out", dynamic_shapes=shapes)
    assert written.check().passed
