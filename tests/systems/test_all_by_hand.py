"""Every operator of examples/by_hand passes the checks that derived ones pass, on each of its rungs."""

from __future__ import annotations

import pytest

from tests.systems.by_hand import by_hand

OPERATORS = {
    "linear": ("add_bias", "linear"),
    "elementwise": ("exp", "sigmoid", "cube", "mul_constant"),
    "my_op": ("my_op",),
    "lltm": ("lltm_cell", "lltm"),
    "conv_bn": ("batch_norm", "conv_bn"),
}


@pytest.mark.nightly
@pytest.mark.parametrize(("file", "name"), [(file, name) for file, names in OPERATORS.items() for name in names])
def test_passes_the_checks(file: str, name: str) -> None:
    verdict = by_hand(file, name).check()
    assert verdict.passed, [str(row) for row in verdict.rows if row.status == "failed"]
    assert ("cpp", "served", "passed") in {(row.rung, row.check, row.status) for row in verdict.rows}
