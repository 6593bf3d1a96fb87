"""The examples of tensor types run, print what is right, and are short."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "tensor_types"
PRINTED = {
    "diagonal": ("tensor([1.0000, 0.5000, 0.2500]", "tensor([2., 2., 2.])"),
    "scalar_tensor": (
        "ScalarTensor(n=5, value=2.0) tensor(0.4000) torch.Size([5, 5])",
        "ScalarTensor(n=5, value=4.0) ScalarTensor(n=5, value=4.0)",
        "tensor([2., 2., 2., 2., 2.])",
    ),
    "logged": (
        "torch.add(Logged[2] float32, Tensor[2] float32, alpha=2)",
        "{'torch.nn.functional.linear': 2, 'torch.nn.functional.relu': 1, 'torch.Tensor.sum': 1}",
        "torch.Tensor.mean(Tensor[4, 3] float32)",
    ),
    "metadata": ("['census', 'survey'] cpp", "['census', 'survey'] tensor([0.5000, 0.5000, 0.5000])"),
    "quantised": ("torch.int8 torch.float32 torch.Size([32, 64])", "True cpp\nTrue"),
    "units": (
        "Quantity(numbers=tensor(11.), units={'kg': 1, 'm': 2, 's': -2})",
        "{'m': 1} and {'kg': 1, 'm': 1, 's': -2} cannot be added",
    ),
}


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = FOLDER / f"{name}.py"
    runpy.run_path(str(file), run_name="__main__")
    printed = capsys.readouterr().out
    assert [line for line in PRINTED[name] if line not in printed] == []
    assert len(file.read_text(encoding="utf-8").splitlines()) < 60
