"""opwright deploy: a model of a file, with the example inputs beside it or from a file."""

import json

import pytest
import torch

from opwright.deployment.deploying import Deployment
from opwright.errors import DeploymentFailed

TEXT = """
import torch
from tests.deployment.models import GatedMLP, gated

model = GatedMLP()
model_args = (torch.ones(2, 24),)

def doubled(x):
    return gated(x, x) * 2

NUMBER = 3
"""


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("", (), "names no model"),
        (":nothing", (), "there is no nothing in"),
        (":NUMBER", (), "NUMBER is no model, but of type int"),
        (":GatedMLP", (), "GatedMLP is no model, but a class"),
        (":doubled", (), "there are no example inputs for doubled"),
        (":doubled", ("--args", "nowhere.pt"), "there is no file nowhere.pt"),
        (":model", ("--to", "fax"), "there is no target 'fax'"),
        (":model", ("--to", "executorch"), "executorch is not installed"),
        (":model", ("--to", "torchscript", "--direct"), "direct= is not for 'torchscript'"),
    ],
)
def test_what_cannot_be_deployed_ends_with_two(write_file, run, tmp_path, name, options, message):
    code, out, err = run("deploy", write_file(TEXT) + name, "--at", str(tmp_path / "out"), *options)
    assert (code, out) == (2, "")
    assert message in err
    assert "hint: " in err
    assert not (tmp_path / "out").exists()


def test_a_file_of_others_stays(write_file, run, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("years of work")
    code, _, err = run("deploy", write_file(TEXT) + ":model", "--at", str(tmp_path / "mine"))
    assert code == 2
    assert "is not empty, and no deployment" in err


def test_a_deployment_that_fails_its_check_ends_with_one(write_file, run, tmp_path, monkeypatch):
    at = tmp_path / "out"

    def failing(self, *, settings=None):
        raise DeploymentFailed("it computes something else", hint="deploy it again")

    monkeypatch.setattr("opwright.cli.commands.deploy.deploy", lambda *_, at, **__: Deployment(at, "aoti", "model"))
    monkeypatch.setattr(Deployment, "check", failing)
    code, out, err = run("deploy", write_file(TEXT) + ":model", "--at", str(at))
    assert (code, out) == (1, "")
    assert "it computes something else" in err


@pytest.mark.nightly
@pytest.mark.seconds(120)
def test_a_module_is_deployed_and_checked(write_file, run, tmp_path):
    target, at = write_file(TEXT) + ":model", tmp_path / "out"
    code, out, err = run("deploy", target, "--to", "aoti", "--at", str(at), "--json")
    found = json.loads(out)
    assert code == 0, err
    assert (found["path"], found["target"], found["name"]) == (str(at), "aoti", "gatedmlp")
    assert sorted(found["files"]) == sorted(
        ("CMakeLists.txt", "README.md", "deployment.json", "expected.pt", "inputs.pt", "libgatedmlp.so", "main.cpp",
         "model.pt2")
    )  # fmt: skip
    assert all((at / file).is_file() for file in found["files"])
    assert found["checked"]["differences"][0] <= found["checked"]["allowed"][0]
    assert found["checked"]["run_us"] > 0
    code, out, err = run("deploy", target, "--to", "torchscript", "--at", str(at), "--no-check")  # replaces it
    assert code == 0, err
    assert "model.ts" in out
    assert not (at / "model.pt2").exists()


@pytest.mark.nightly
def test_a_function_is_deployed_and_checked(write_file, run, tmp_path):
    torch.save([torch.ones(3, 5)], tmp_path / "given.pt")
    how = ("--args", str(tmp_path / "given.pt"), "--to", "torchscript", "--at", str(tmp_path / "out"), "--json")
    code, out, _ = run("deploy", write_file(TEXT) + ":doubled", *how)
    found = json.loads(out)
    assert code == 0
    assert (found["target"], found["name"]) == ("torchscript", "doubled")
    assert found["checked"]["differences"][0] <= found["checked"]["allowed"][0]
