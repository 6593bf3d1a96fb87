"""Operators with arguments of every kind, in every format: right, or one sentence."""

import json

import pytest
import torch
from torch import nn

import opwright
from opwright.deployment.programs.export import export
from opwright.deployment.programs.settled import READ_IN_CPP, with_settled_arguments
from opwright.errors import DeploymentUnsupported

_FORMS = [("aoti", None), ("torchscript", None), ("onnx", "function"), ("onnx", "decomposed"), ("onnx", "custom")]
_X = torch.linspace(-2, 3, 12).reshape(3, 4)


@opwright.operator(name="deployed::joined")
def joined(xs: list[torch.Tensor], scale: float) -> torch.Tensor:
    return torch.cat(xs, -1) * scale


@opwright.operator(name="deployed::moved")
def moved(x: torch.Tensor, shift: torch.Tensor | None, axes: list[int]) -> torch.Tensor:
    y = x.sum(axes, keepdim=True) + x
    return y if shift is None else y + shift


@opwright.operator(name="deployed::worded")
def worded(x: torch.Tensor, kind: str, flag: bool = True, limit: float | None = None) -> torch.Tensor:
    y = x.tanh() if kind == "tanh" else x.sigmoid()
    y = y if limit is None else y.clamp(max=limit)
    return y if flag else -y


@opwright.operator(name="deployed::flagged")
def flagged(x: torch.Tensor, negative: bool = True, count: int = 3) -> torch.Tensor:
    return -x * count if negative else x.tanh() * count


@opwright.operator(name="deployed::added_", mutates=("x",))
def added_(x: torch.Tensor, y: torch.Tensor) -> None:
    x.add_(y * 2)


def of_structures(x):
    """Lists, None, and a tensor that an operator changes."""
    y = x.clone()
    added_(y, x)
    return joined([moved(y, None, [0]), moved(x, x, [0, 1])], 0.5)


def of_defaults(x):
    return flagged(x) + flagged(x, False) + flagged(x, count=2)


def of_words(x):
    return worded(x, "tanh") + worded(x, "other", flag=False, limit=0.6)


@pytest.mark.nightly
@pytest.mark.seconds(120)
@pytest.mark.parametrize(("to", "form"), _FORMS)
def test_structures_and_changed_tensors_leave_as_operations(tmp_path, to, form):
    written = opwright.deploy(of_structures, (_X,), to=to, at=tmp_path / "out", operators=form)
    assert written.check().passed
    assert not [file for file in written.files if file.endswith(".so")]


@pytest.mark.nightly
@pytest.mark.seconds(120)
@pytest.mark.parametrize(("to", "form"), _FORMS)
def test_defaults_and_keywords_are_right(tmp_path, to, form):
    written = opwright.deploy(of_defaults, (_X,), to=to, at=tmp_path / "out", operators=form)
    assert written.check().passed


@opwright.operator(name="deployed::scaled")
def scaled(
    x: torch.Tensor,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    *,
    gain: float | None = None,
    kind: str = "tanh",
) -> torch.Tensor:
    y = x.tanh() if kind == "tanh" else x.sigmoid()
    y = y if weight is None else y * weight
    y = y if bias is None else y + bias
    return y if gain is None else y * gain


@opwright.operator(name="deployed::shifted")
def shifted(x: torch.Tensor, by: torch.Tensor | None) -> torch.Tensor:
    return x if by is None else x.cos() + by


class Scaled(nn.Module):
    """The same operator with some of its arguments here and others there, and its gradient."""

    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.linspace(0.5, 2, 4)), nn.Parameter(torch.linspace(-1, 1, 4))

    def forward(self, x):
        both = shifted(scaled(x, self.weight, self.bias, gain=0.5), self.bias)
        (slope,) = torch.autograd.grad(scaled(x, bias=self.bias, kind="sigmoid").sum(), x)
        return both + scaled(x, self.weight), slope


_ROWS = {"x": {0: torch.export.Dim("rows", min=1)}}


@pytest.mark.nightly
@pytest.mark.seconds(120)
@pytest.mark.parametrize(("to", "form"), _FORMS)
def test_words_and_optional_numbers_are_right(tmp_path, to, form):
    assert opwright.deploy(of_words, (_X,), to=to, at=tmp_path / "out", operators=form).check().passed


@pytest.mark.nightly
@pytest.mark.seconds(120)
@pytest.mark.parametrize(("to", "direct"), [("aoti", False), ("aoti", True), ("torchscript", False)])
def test_optional_tensors_have_kernels(tmp_path, to, direct):
    x = _X.clone().requires_grad_()
    written = opwright.deploy(Scaled(), (x,), to=to, at=tmp_path / "out", dynamic_shapes=_ROWS, direct=direct)
    assert written.check().passed
    operators = json.loads((tmp_path / "out" / "deployment.json").read_text())["operators"]
    assert any(name.startswith("deployed::scaled_without_bias_gain") for name in operators)


def test_what_a_program_says_of_a_call_is_no_parameter():
    exported = with_settled_arguments(export(Scaled(), (_X.clone().requires_grad_(),), _ROWS))
    types = {call.operator.name: [p.type for p in call.signature.parameters] for call in exported.calls}
    assert all(READ_IN_CPP.issuperset(each) for each in types.values())
    assert sorted(map(len, types.values())) == [2, 2, 2, 3, 4]
    found = exported.program.module()(_X.clone().requires_grad_())
    torch.testing.assert_close(found, exported.expected)


class Scripted(nn.Module):
    """Calls of a module, of a function, and in a branch."""

    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        if bool(x.sum() > 0):
            x = self.inner(x)
        return limited(x) + worded(x, "other")


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.linspace(-1, 1, 4))

    def forward(self, x):
        return scaled(x, None, self.bias, gain=0.5, kind="sigmoid")


def limited(x: torch.Tensor):
    return worded(x, "tanh", limit=0.3)


class Choosing(nn.Module):
    """What is left out depends on a value."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.ones(4))

    def forward(self, x):
        bias: torch.Tensor | None = None
        if bool(x.sum() > 0):
            bias = self.bias
        return scaled(x, None, bias)


def test_what_a_script_says_of_a_call_is_no_parameter():
    exported = export(torch.jit.script(Scripted()), (_X,), keeps_scripts=True)
    assert [len(call.arguments) for call in exported.calls] == [3, 3, 2]  # with gain; with limit; without
    assert all(READ_IN_CPP.issuperset(p.type for p in call.signature.parameters) for call in exported.calls)
    for x in (_X, -_X):
        torch.testing.assert_close(exported.script(x), Scripted()(x))


def test_arguments_that_a_script_computes_are_refused(tmp_path):
    sentence = "deployed::scaled has parameters of type Tensor\\?, float\\?, str"
    with pytest.raises(DeploymentUnsupported, match=sentence) as refused:
        opwright.deploy(torch.jit.script(Choosing()), (_X,), to="torchscript", at=tmp_path / "out")
    assert refused.value.hint
    assert not list(tmp_path.iterdir())


@pytest.mark.nightly
@pytest.mark.seconds(120)
def test_words_of_a_scripted_model_are_right(tmp_path):
    written = opwright.deploy(
        torch.jit.script(Scripted()), (_X,), to="torchscript", at=tmp_path / "out",
        dynamic_shapes=_ROWS,
    )  # fmt: skip
    assert written.check().passed
    operators = json.loads((tmp_path / "out" / "deployment.json").read_text())["operators"]
    assert any(name.startswith("deployed::scaled_without_weight") for name in operators)
