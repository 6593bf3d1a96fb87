"""Parameters and variables of an ejected operator may be called as the project calls its own, or are refused."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

import opwright
from opwright.errors import NotEjectable
from opwright.projects import eject


@opwright.operator(samples=opwright.shapes("B S", "S", "B S", "B S", B=4, S=24))
def mistakable(end: Tensor, made: Tensor, ctx: Tensor, outputs: Tensor, inputs: float = 0.5) -> Tensor:
    begin = end.mean(-1, keepdim=True)
    grads = F.softmax((end - begin) * made * inputs, -1)
    tangents = grads * ctx
    return tangents + outputs.sin()


@pytest.mark.nightly
def test_a_project_with_mistakable_names_builds_and_passes_its_tests(standalone, tmp_path):
    eject(mistakable, tmp_path / "project", dtypes=(torch.float64,))
    standalone.build(tmp_path / "project")
    done = standalone.test(tmp_path / "project")
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout


def test_methods_of_a_project_call_nothing_twice(tmp_path):
    """Attributes of `ctx`, and what it is called itself, are not what arguments are called."""
    eject(mistakable, tmp_path / "project", dtypes=(torch.float64,))
    text = (tmp_path / "project/mistakable/function.py").read_text()
    assert "    end: torch.Tensor, made: torch.Tensor, ctx: torch.Tensor, outputs: torch.Tensor, inputs: float" in text
    assert "def setup_context(ctx, inputs, outputs):" in text
    assert "def forward(end, made_1, ctx_1, outputs_1):" in text


@opwright.operator(samples=opwright.shapes("B S", "B S", B=4, S=24))
def doubled_reference(x: Tensor, reference: Tensor) -> Tensor:
    return x * reference * 2


@opwright.operator(samples=opwright.shapes("B S", B=4, S=24))
def shown_repr(x: Tensor, repr: float = 0.5) -> Tensor:
    return x * repr


@pytest.mark.parametrize(("operator", "name"), [(doubled_reference, "reference"), (shown_repr, "repr")])
def test_names_that_the_project_needs_are_refused(operator, name, tmp_path):
    with pytest.raises(NotEjectable, match=rf"test_names.py:\d+: a parameter is named {name}, a name"):
        eject(operator, tmp_path / "project", dtypes=(torch.float64,))
