"""The operators of a package as C++: `pytest --update-golden` writes the expected file anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from opwright.codegen.cpp.registration import PackagedKernel, PackagedOperator, ProcessorLevel, emit_registration

GOLDEN = Path(__file__).parents[1] / "goldens/registration.cpp"
LEVELS = (ProcessorLevel("fast", ("avx2", "fma"), "avx2"), ProcessorLevel("plain", (), ""))
KERNEL = PackagedKernel("scale_forward_1", (0, 1), (1,), {2: True, 3: -2}, ((1, -1, ">=", 0.5),), 2, True)
SCALE = PackagedOperator(
    "my::scale",
    'Tensor x, float factor=1.5, bool up=True, int axis=-2, *, Tensor y, str mode="a"',
    ("Tensor", "float", "bool", "int", "Tensor"),
    1,
    (
        KERNEL,
        replace(KERNEL, name="scale_forward_3", is_cuda=True),
        replace(KERNEL, name="scale_forward_2", tensors=(0, 4), numbers=(), constants={1: 0.0}, bounds=()),
    ),
)


def test_golden(request: pytest.FixtureRequest) -> None:
    text = emit_registration(
        "my_kernels",
        [SCALE, replace(SCALE, name="my::named", types=("Tensor", "str"))],
        LEVELS,
        ("cuda/scale_forward_3.so",),
    )
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(text)
    assert GOLDEN.read_text() == text, "it is emitted differently; see pytest --update-golden"


@pytest.mark.parametrize(
    ("constant", "spelled"),
    [
        (0.1, "0.1"),
        (-0.0, "-0.0"),
        (float("inf"), "__builtin_inf()"),
        (float("-inf"), "-__builtin_inf()"),
        (float("nan"), '__builtin_nan("")'),
        (3, "Size(3)"),
        (False, "false"),
    ],
)
def test_a_constant_is_compared_with_itself(constant: float | int | bool, spelled: str) -> None:
    kernel = replace(KERNEL, constants={2: constant}, bounds=())
    text = emit_registration("my_kernels", [replace(SCALE, kernels=(kernel,))], LEVELS)
    assert f"is_same(argument_2, {spelled})" in text
