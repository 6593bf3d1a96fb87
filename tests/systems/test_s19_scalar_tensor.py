"""S19: a multiple of the identity that is not a Tensor, and acts like one."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import torch

from opwright.errors import HandlerRefused
from opwright.tensors import Like

EXAMPLE = Path(__file__).parents[2] / "examples" / "tensor_types" / "scalar_tensor.py"


@pytest.fixture
def scalar() -> Any:
    return runpy.run_path(str(EXAMPLE))["ScalarTensor"]


def test_its_mean_is_that_of_the_matrix(scalar: Any) -> None:
    d = scalar(5, 2.0)
    assert torch.mean(d).item() == pytest.approx(0.4)
    assert d.mean().item() == pytest.approx(0.4)
    torch.testing.assert_close(torch.mean(d, axis=0), torch.full((5,), 0.4))
    assert repr(d) == "ScalarTensor(n=5, value=2.0)"


def test_sums_are_of_its_type_only_among_themselves(scalar: Any) -> None:
    d, x = scalar(2, 2.0), torch.ones(2, 2)
    both = torch.add(d, d)
    assert isinstance(both, scalar)
    assert both.value == 4.0
    for made in (torch.add(d, x), torch.add(x, d), d + x, x + d, x.add(d), x.clone().add_(d)):
        assert type(made) is torch.Tensor
        assert made.tolist() == [[3.0, 1.0], [1.0, 3.0]]
    assert torch.add(d, d, alpha=3).value == 8.0
    with pytest.raises(ValueError, match="matrices of 2 and 3 rows"):
        torch.add(d, scalar(3, 2.0))


def test_its_author_chooses_what_happens_to_other_functions(scalar: Any) -> None:
    d = scalar(2, 2.0)
    with pytest.raises(TypeError, match=r"torch\.mul is not handled by ScalarTensor"):
        torch.mul(d, 3)
    scalar.fallback("densify")
    assert torch.mul(d, 3).tolist() == [[6.0, 0.0], [0.0, 6.0]]
    assert torch.mul(torch.ones(2, 2), d).tolist() == [[2.0, 0.0], [0.0, 2.0]]


def test_the_handlers_of_the_documents_lack_parameters() -> None:
    class OfTheDocuments(Like):
        def __init__(self, n: int, value: float) -> None:
            self._N, self._value = n, value

    with pytest.raises(HandlerRefused, match="does not take dtype, dim, keepdim"):

        @OfTheDocuments.implements(torch.mean)
        def mean(input: Any) -> float:
            return float(input._value) / input._N

    OfTheDocuments.implements(torch.mean, partial=True)(lambda input: float(input._value) / input._N)
    assert torch.mean(OfTheDocuments(5, 2)) == pytest.approx(0.4)
    with pytest.raises(TypeError, match=r"torch\.mean is not handled by OfTheDocuments"):
        torch.mean(OfTheDocuments(5, 2), dim=0)
