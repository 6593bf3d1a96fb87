"""The program in C++: what it demands of inputs, and the tools that build it."""

import pytest
import torch

import opwright
from opwright.deployment.programs.export import export
from opwright.deployment.runner.inputs import input_rows
from opwright.errors import DeploymentUnsupported, ToolMissing
from tests.deployment.models import made


def test_sizes_and_orders_are_told():
    rows, symbols = input_rows(export(*made("lltm")))
    assert rows == [
        "{at::kFloat, {4, 3, 8}, {0, 1, 2}}", "{at::kFloat, {3, 16}, {0, 1}}", "{at::kFloat, {3, 16}, {0, 1}}"
    ]  # fmt: skip
    assert not symbols


def test_sizes_that_change_are_symbols():
    rows, symbols = input_rows(export(*made("dynamic")))
    assert rows == ["{at::kFloat, {~0, 24}, {0, 1}}"]
    assert len(symbols) == 1


def test_channels_last_stays():
    model, (x,), _ = made("convolution")
    rows, _ = input_rows(export(model, (x.to(memory_format=torch.channels_last),)))
    assert rows == ["{at::kFloat, {2, 3, 10, 12}, {0, 2, 3, 1}}"]


def test_computed_sizes_are_refused():
    batch = torch.export.Dim("batch", min=2)
    exported = export(
        lambda x, y: x.repeat(2, 1) + y, (torch.ones(3, 2), torch.ones(6, 2)), ({0: batch}, {0: 2 * batch})
    )
    with pytest.raises(DeploymentUnsupported, match=r"a size of an argument is 2\*"):
        input_rows(exported)


@pytest.mark.parametrize("to", ["aoti", "torchscript"])
def test_without_cmake_nothing_is_written(monkeypatch, tmp_path, to):
    monkeypatch.setattr("opwright.deployment.runner.running.shutil.which", lambda name: None)
    with pytest.raises(ToolMissing, match="there is no CMake") as refused:
        opwright.deploy(lambda x: x, (torch.ones(2),), to=to, at=tmp_path / "out")
    assert refused.value.hint
    assert not list(tmp_path.iterdir())
