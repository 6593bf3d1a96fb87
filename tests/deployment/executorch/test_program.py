"""Runs where the package is installed: pip install executorch."""

import pytest
import torch

import opwright
from opwright.errors import DeploymentFailed, DeploymentUnsupported

pytest.importorskip("executorch")


@opwright.operator
def gated(x: torch.Tensor, gate: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
    return x * torch.sigmoid(gate) * scale


class Gate(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 16)

    def forward(self, x):
        left, right = self.linear(x).chunk(2, -1)
        return gated(left.contiguous(), right.contiguous(), 3.0), left.sum(-1)


def test_a_model_becomes_a_program_that_computes_what_eager_does(tmp_path):
    sizes = ({0: torch.export.Dim("batch", max=64)},)
    deployment = opwright.deploy(
        Gate(), (torch.randn(4, 8),), to="executorch", at=tmp_path / "out", dynamic_shapes=sizes
    )
    checked = deployment.check()
    assert checked.passed
    assert len(checked.differences) == 2
    expected = torch.load(tmp_path / "out" / "expected.pt", weights_only=True)
    torch.save([each + 1 for each in expected], tmp_path / "out" / "expected.pt")
    with pytest.raises(DeploymentFailed, match="its results differ by 1, 1"):
        deployment.check()


def test_what_it_does_not_take_is_refused(tmp_path):
    def complex_numbers(x):
        return torch.view_as_real(torch.fft.fft(gated(x, x)))

    with pytest.raises(DeploymentUnsupported, match="executorch does not take the model"):
        opwright.deploy(complex_numbers, (torch.randn(4, 8),), to="executorch", at=tmp_path / "out")
    assert not (tmp_path / "out").exists()
