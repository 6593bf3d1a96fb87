"""`opwright coverage`: a type of a file, its samples, and what is said if there is none."""

import json

import pytest

TYPE = """
import torch
from opwright.tensors import Like

class Twice(Like):
    def __init__(self, n):
        self.n = n

    def densify(self):
        return 2 * torch.eye(self.n)

Twice.fallback("densify")
"""
SAMPLES = "samples = [Twice(3)]\n"
WRONG = """
@Twice.implements(torch.exp)
def exp(input):
    return torch.ones(3, 3)
"""


@pytest.mark.parametrize(("text", "code"), [(TYPE + SAMPLES, 0), (TYPE + WRONG + SAMPLES, 1)])
def test_the_exit_code_and_the_json_say_whether_something_is_wrong(write_file, run, text, code):
    exit_code, out, _ = run("coverage", write_file(text) + ":Twice", "--only", "exp", "--json")
    (result,) = json.loads(out)
    assert (exit_code, result["passed"], result["subject"]) == (code, code == 0, "Twice")
    assert {entry["name"] for entry in result["entries"]} == {"torch.exp", "torch.Tensor.exp", "torch.Tensor.exp_"}


def test_a_table_and_a_page(write_file, run):
    target = write_file(TYPE + "def samples():\n    return [Twice(3)]\n") + ":Twice"
    _, out, _ = run("coverage", target, "--only", "exp")
    assert "Twice: PASSED" in out
    _, out, _ = run("coverage", target, "--only", "exp", "--page")
    assert out.startswith("# Twice")


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        (TYPE + SAMPLES, "", "names no type"),
        (TYPE + SAMPLES, ":Other", "there is no type Other"),
        (TYPE, ":Twice", "has no objects of Twice in samples"),
        (TYPE + "samples = lambda: 1 / 0\n", ":Twice", "ZeroDivisionError"),
    ],
)
def test_what_cannot_be_tried_is_said_without_a_traceback(write_file, run, text, name, said):
    exit_code, _, err = run("coverage", write_file(text) + name)
    assert exit_code == 2
    assert said in err
    assert "Traceback" not in err
