"""Operators with arguments of every kind, in every format: right, or one sentence."""

import pytest
import torch

import opwright
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


@pytest.mark.nightly
@pytest.mark.seconds(60)
@pytest.mark.parametrize("form", ["function", "decomposed", "custom"])
def test_words_and_optional_numbers_are_for_onnx(tmp_path, form):
    assert opwright.deploy(of_words, (_X,), to="onnx", at=tmp_path / "out", operators=form).check().passed


@pytest.mark.parametrize("to", ["aoti", "torchscript"])
def test_words_are_refused_where_cpp_passes_none(tmp_path, to):
    sentence = r"test_arguments.py:\d+: deployed::worded has parameters of type float\?, str"
    with pytest.raises(DeploymentUnsupported, match=sentence) as refused:
        opwright.deploy(of_words, (_X,), to=to, at=tmp_path / "out")
    assert refused.value.hint
    assert not list(tmp_path.iterdir())
