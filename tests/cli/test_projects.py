"""`opwright eject` and `opwright new`."""

import json

import pytest

from opwright.optim.shipping import planning

OPERATORS = """
import torch
import opwright

@opwright.operator(samples=opwright.shapes("B S", B=4, S=8), name="{name}_first")
def first(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(x)

@opwright.operator(name="{name}_second")
def second(x: torch.Tensor) -> torch.Tensor:
    return x * 2
"""


def test_eject_says_what_it_wrote(write_file, run, tmp_path):
    file = write_file(OPERATORS.format(name="says"))
    code, out, err = run("eject", f"{file}:first", "--to", str(tmp_path / "project"), "--dtype", "float64", "--json")
    assert (code, err) == (0, "")
    (said,) = [json.loads(out)]
    assert said["operator"] == "says_first"
    assert said["kernels"] == {"float64": "float64[4, 8]"}
    assert said["left_to_the_reference"] == {}
    assert all((tmp_path / "project" / path).is_file() for path in said["files"])

    code, out, err = run("eject", f"{file}:first", "--to", str(tmp_path / "project"))
    assert (code, out) == (2, "")
    assert "is not empty" in err
    assert "--force" in err


@pytest.mark.parametrize(
    ("operator", "options", "words"),
    [
        ("", (), "has first, second\nhint: name one of them: FILE:NAME"),
        (":second", (), "second has no samples, so it is unknown which kernels to eject"),
        (":first", ("--dtype", "float31"), "'float31' is not a torch dtype"),
    ],
)
def test_eject_refuses(write_file, run, tmp_path, operator, options, words):
    file = write_file(OPERATORS.format(name="refuses"))
    code, out, err = run("eject", f"{file}{operator}", "--to", str(tmp_path / "project"), *options)
    assert (code, out) == (2, "")
    assert words in err
    assert not (tmp_path / "project").exists()


OPTIMIZER = """
import opwright
from opwright.optim import AdamW

@opwright.optimizer()
def Descent(param, grad, step, *, lr=0.1):
    return (param - lr * grad,)
"""


def test_eject_takes_the_optimizer_that_a_file_defines(write_file, run, tmp_path, monkeypatch):
    monkeypatch.setattr(planning, "USUAL_SHAPES", ((5, 7),))
    file, project = write_file(OPTIMIZER), tmp_path / "project"
    code, out, err = run("eject", file, "--to", str(project), "--dtype", "float32", "--json")
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert said["optimizer"] == "descent"
    assert list(said["kernels"]) == ["float32", "float32_scaled", "float32_unscaled"]
    assert all((project / path).is_file() for path in said["files"])


def test_new_says_what_it_wrote(run, tmp_path):
    code, out, err = run("new", "gated_unit", "--to", str(tmp_path / "project"), "--json")
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert said["name"] == "gated_unit"
    assert all((tmp_path / "project" / path).is_file() for path in said["files"])
    code, out, err = run("new", "no-package", "--to", str(tmp_path / "other"))
    assert (code, out) == (2, "")
    assert "'no-package' cannot be the name of a package" in err
