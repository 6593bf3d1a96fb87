"""AOTInductor: a C++ program without Python, which looks at its inputs itself."""

import subprocess
from dataclasses import replace

import pytest
import torch

import opwright
from opwright.deployment.deploying import Deployment
from opwright.deployment.library.planned import _level
from opwright.deployment.runner.running import run_program
from opwright.errors import DeploymentFailed
from tests.deployment.models import MODELS, made

pytestmark = pytest.mark.nightly


def deployed(name, at, **how) -> Deployment:
    model, args, shapes = made(name)
    return opwright.deploy(model, args, at=at, dynamic_shapes=shapes, **how)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_runs_in_cpp(tmp_path, name):
    assert deployed(name, tmp_path / "out").check().passed


@pytest.mark.parametrize("name", ["lltm", "numbers"])
def test_kernels_are_called_without_the_dispatcher(tmp_path, name):
    assert deployed(name, tmp_path / "out", direct=True).check().passed


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """A deployment with a batch that may change, built."""
    at = tmp_path_factory.mktemp("program") / "out"
    deployed("dynamic", at).check()
    return at


def _run(program, given, tmp_path):
    torch.save(given, tmp_path / "in.pt")
    run_program(program, [str(tmp_path / "in.pt"), str(tmp_path / "out.pt")])
    return torch.load(tmp_path / "out.pt", weights_only=True)


@pytest.mark.parametrize("batch", [0, 1, 2, 33])
@pytest.mark.parametrize("strided", [False, True])
def test_any_batch_and_stride_is_right(program, tmp_path, batch, strided):
    model, _, _ = made("dynamic")
    x = torch.randn(24, batch).t() if strided else torch.randn(batch, 24)
    (found,) = _run(program, [x], tmp_path)
    torch.testing.assert_close(found, model(x).detach())


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([torch.ones(3, 25)], r"input 0 is Float\[3, 25\], and the model takes Float\[s\w+, 24\]"),
        ([torch.ones(3, 24).double()], r"input 0 is Double\[3, 24\]"),
        ([torch.ones(24)], r"input 0 is Float\[24\]"),
        ([torch.ones(3, 24)] * 2, "takes 1 tensors, not 2"),
        ({"x": 1}, "something else than a list of tensors"),
    ],
)
def test_other_inputs_are_refused(program, tmp_path, given, sentence):
    with pytest.raises(DeploymentFailed, match=sentence):
        _run(program, given, tmp_path)


def test_no_python_is_loaded(program):
    """Neither needed nor opened at run time: the dynamic loader says what it opens."""
    needed = subprocess.run(
        ["readelf", "-d", program / "main", program / "libgatedmlp.so"], capture_output=True, text=True, check=True
    ).stdout
    ran = subprocess.run([program / "main"], env={"LD_DEBUG": "files"}, capture_output=True, text=True, check=True)
    opened = [line.rpartition("file=")[2].split("/")[-1] for line in ran.stderr.splitlines() if "file=" in line]
    assert any("libtorch_cpu" in each for each in opened)
    assert any(each.startswith("libgatedmlp.so") for each in opened)
    for text in (needed, *opened):
        assert "libpython" not in text
        assert "libtorch_python" not in text
        assert "opwright" not in text.replace("opwright-", "")


def test_a_wrong_result_is_found(tmp_path):
    written = deployed("loss", tmp_path / "out")
    expected = torch.load(written.path / "expected.pt")
    torch.save([each + 1e-3 for each in expected], written.path / "expected.pt")
    with pytest.raises(DeploymentFailed, match="computes something else than eager"):
        written.check()


@pytest.mark.seconds(90)
def test_a_lesser_processor_is_told(tmp_path, monkeypatch):
    """No processor has both of these: one is of AMD's, the other was in Intel's Xeon Phi alone."""
    level = replace(_level(), features=("sse4a", "avx512er"))
    monkeypatch.setattr("opwright.deployment.library.planned._level", lambda: level)
    with pytest.raises(DeploymentFailed, match=r"model\.pt2 was compiled for processors with more instructions"):
        deployed("numbers", tmp_path / "out").check()
