"""S04: the logistic function, and why a checker differentiates numerically in float64."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck
from torch.autograd.gradcheck import GradcheckError

from tests.systems.by_hand import by_hand


@pytest.mark.filterwarnings("ignore:Input #0 requires gradient and is not a double:UserWarning")
def test_even_the_built_in_fails_in_float32() -> None:
    x = torch.linspace(-3, 3, 30)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(torch.sigmoid, (x.requires_grad_(),), eps=1e-4)
    assert gradcheck(torch.sigmoid, (x.detach().double().requires_grad_(),), eps=1e-4)


def test_the_kernel_by_hand_passes_where_it_can_be_told() -> None:
    sigmoid = by_hand("elementwise", "sigmoid").on("cpp")
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert gradcheck(sigmoid, (x,))
    torch.testing.assert_close(sigmoid(x.float()), torch.sigmoid(x.float()), rtol=1e-6, atol=0)
