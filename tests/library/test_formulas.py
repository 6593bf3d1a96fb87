"""Ready operators compute what other formulas do, in float64; as they are written, without kernels."""

import pytest
import torch

import opwright.library
from tests.library.formulas import FORMULAS


def listed(result):
    return list(result) if isinstance(result, tuple) else [result]


def test_every_operator_has_another_formula():
    assert sorted(FORMULAS) == sorted(opwright.library.__all__)


@pytest.mark.parametrize("name", FORMULAS)
def test_it_computes_what_another_formula_does(name):
    operator = getattr(opwright.library, name)
    factory = operator.samples
    for sample in (factory.small("cpu", torch.float64)[0], factory("cpu", torch.float64)[0]):
        found, expected = listed(operator.reference(*sample.args)), listed(FORMULAS[name](*sample.args))
        tolerance = (
            {"rtol": 1e-5, "atol": 1e-5} if "iou" in name or "poincare" in name else {"rtol": 1e-9, "atol": 1e-11}
        )
        torch.testing.assert_close(found, expected, **tolerance)
        wrong = [one * 1.001 + 1e-3 for one in expected]
        with pytest.raises(AssertionError):
            torch.testing.assert_close(found, wrong, **tolerance)
