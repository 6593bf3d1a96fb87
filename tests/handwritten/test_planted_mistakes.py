"""A mistake in a source of the author's is one message that names the line, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from opwright.errors import (
    BuildFailed,
    FunctionMissing,
    ImplementationRefused,
    OpwrightError,
    ResultOverrun,
    WrongDeclaration,
    WrongResult,
)
from tests.handwritten.planted import BACKWARD, RIGHT, changed, made

TORCH = """\
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>
using torch::stable::Tensor;
"""

# mistake: the source, more options, the error, its line, what it says, what it hints at
MISTAKES: dict[str, tuple[str, dict[str, Any], type[OpwrightError], int, str, str]] = {
    "wrong function name": (
        RIGHT,
        {"forward": "foward"},
        FunctionMissing,
        2,
        "no function 'foward' is defined in",
        "did you mean 'forward'?",
    ),
    "no function of that kind": (
        RIGHT,
        {"forward": "run"},
        FunctionMissing,
        1,
        "no function 'run'",
        "the functions defined there are forward",
    ),
    "an argument too few": (
        changed(RIGHT, ("const T* y, ", ""), (" - y[k]", "")),
        {},
        WrongDeclaration,
        2,
        "forward takes 1 of the 2 arguments of planted; 'y' is not among its parameters",
        "the name of the argument that it receives",
    ),
    "an argument too many": (
        changed(RIGHT, ("const T* y, ", "const T* y, const T* w, ")),
        {},
        WrongDeclaration,
        2,
        "forward has parameter 'w', which matches nothing of its operator",
        "here one of x, y, x_size_0, n",
    ),
    "a result too many": (
        changed(RIGHT, ("T* z, ", "T* z, T* u, ")),
        {},
        WrongDeclaration,
        2,
        "forward writes 2 results, but planted returns 1",
        "is a result that the kernel writes",
    ),
    "wrong return type": (
        changed(RIGHT, ("void forward", "int forward")),
        {},
        WrongDeclaration,
        2,
        "forward returns int, but a kernel returns void",
        "write results through pointers",
    ),
    "wrong name of a gradient": (
        RIGHT + changed(BACKWARD, ("grad_y", "grad_w")),
        {"backward": "backward"},
        WrongDeclaration,
        6,
        "backward writes 'grad_w', which is not a gradient of planted",
        "grad_x, grad_y",
    ),
    "a cotangent of nothing": (
        RIGHT + changed(BACKWARD, ("grad_z", "grad_out")),
        {"backward": "backward"},
        WrongDeclaration,
        6,
        "backward has parameter 'grad_out'",
        "grad_z",
    ),
    "overloads that differ": (
        "void forward(const float* x, const float* y, float* z, int64_t n) {}\n"
        "void forward(const double* x, double* z, int64_t n) {}\n",
        {},
        WrongDeclaration,
        2,
        "the overloads of forward differ in more than types",
        "name the parameters as at",
    ),
    "wrong return type over tensors": (
        f"{TORCH}int forward(Tensor x, Tensor y) {{ return 0; }}\n",
        {},
        WrongDeclaration,
        4,
        "forward returns int, but a function over torch::Tensor returns tensors",
        "std::vector<torch::Tensor>",
    ),
    "wrong argument count over tensors": (
        f"{TORCH}Tensor forward(Tensor x) {{ return x; }}\n",
        {},
        WrongDeclaration,
        4,
        "forward takes 1 arguments (x), but the operator takes 2 (x, y)",
        "",
    ),
    "backward over tensors that asks for too much": (
        f"{TORCH}Tensor forward(Tensor x, Tensor y) {{ return x; }}\n"
        "std::vector<Tensor> backward(Tensor grad_z, Tensor z) { return {grad_z}; }\n",
        {"backward": "backward"},
        WrongDeclaration,
        5,
        "backward takes 'z', which a backward pass does not have",
        "results= and saved=",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_head_is_told_before_anything_is_compiled(mistake: str, tmp_path: Path) -> None:
    text, options, error, line, fact, hint = MISTAKES[mistake]
    file = tmp_path / "planted.cpp"
    file.write_text(text)
    with pytest.raises(error) as refusal:
        made().implement("cpp", sources=[file], **{"forward": "forward", **options})
    _check(refusal.value, file, line, fact, hint)


BUILD_MISTAKES = {
    "compile error": (changed(RIGHT, ("- y[k]", "- u[k]")), 3, "was not declared in this scope", "see it again"),
    "missing header": (
        f'#include <cmath>\n#include "nowhere.h"\n{RIGHT}',
        2,
        "the header nowhere.h was not found",
        "include_dir",
    ),
}


@pytest.mark.parametrize("mistake", BUILD_MISTAKES)
def test_what_the_compiler_refuses_is_told_with_its_line(mistake: str, tmp_path: Path) -> None:
    text, line, fact, hint = BUILD_MISTAKES[mistake]
    file = tmp_path / "planted.cpp"
    file.write_text(text)
    operator = made()
    operator.implement("cpp", sources=[file], forward="forward")
    x = torch.ones(2, 3)
    for call in (operator, operator.on("cpp")):
        with pytest.raises(BuildFailed) as refusal:
            call(x, x)
        _check(refusal.value, file, line, fact, hint)


@pytest.mark.parametrize(
    ("loop", "where"),
    [("k <= n", "wrote up to 4 bytes behind the last element of 'z'"), ("k < n + 7", "up to 28 bytes behind")],
)
def test_a_kernel_that_writes_past_its_result_is_found(loop: str, where: str, tmp_path: Path) -> None:
    file = tmp_path / "planted.cpp"
    file.write_text(changed(RIGHT, ("k < n", loop), ("z[k] = 3 * x[k] - y[k]", "z[k] = 0")))
    operator = made()
    operator.implement("cpp", sources=[file], forward="forward", guarded=True)
    with pytest.raises(ResultOverrun) as refusal:
        operator(torch.ones(2, 3), torch.ones(2, 3))
    _check(refusal.value, file, 2, f"forward {where}" if where.startswith("wrote") else where, "number of elements")


def test_a_kernel_that_writes_before_its_result_is_found(tmp_path: Path) -> None:
    file = tmp_path / "planted.cpp"
    file.write_text(changed(RIGHT, ("int64_t k = 0", "int64_t k = -1"), ("3 * x[k] - y[k]", "0")))
    operator = made()
    operator.implement("cpp", sources=[file], forward="forward", guarded=True)
    with pytest.raises(ResultOverrun, match="wrote up to 4 bytes before the first element of 'z'"):
        operator(torch.ones(2, 3), torch.ones(2, 3))


def test_guard_zones_leave_a_right_kernel_alone(tmp_path: Path) -> None:
    operator = made()
    operator.implement("cpp", source=RIGHT + BACKWARD, backward="backward", guarded=True)
    x = torch.randn(3, 4, requires_grad=True)
    z = operator(x, x.detach())
    assert torch.equal(z, 3 * x - x)
    assert torch.equal(torch.autograd.grad(z.sum(), x)[0], torch.full((3, 4), 3.0))
    changed = operator(x, x.detach())
    changed *= 2  # a result, and not a view of the memory around it
    assert torch.equal(torch.autograd.grad(changed.sum(), x)[0], torch.full((3, 4), 6.0))


REFUSALS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no source": (lambda op: op.implement("cpp", forward="forward"), "was given no source"),
    "both kinds of source": (
        lambda op: op.implement("cpp", sources=["a.cpp"], source=RIGHT),
        "was given both sources= and source=",
    ),
    "no such file": (lambda op: op.implement("cpp", sources=["nowhere.cpp"]), "cannot be read"),
    "an unknown layout": (
        lambda op: op.implement("cpp", source=RIGHT, layouts={"x": "diagonal"}),
        "gives 'diagonal' for 'x'",
    ),
    "a layout of nothing": (lambda op: op.implement("cpp", source=RIGHT, layouts={"w": "any"}), "gives 'any' for 'w'"),
    "saved without sizes": (
        lambda op: op.implement("cpp", source=RIGHT, saved=("z",)),
        "the sizes of what the kernels of planted save .* are not given",
    ),
    "a class that is no Function": (lambda op: op.implement("function", dict), "cannot be implemented by"),
    "sources for a Function": (lambda op: op.implement("function", len, source=RIGHT), "cannot be implemented so"),
    "the rung of the reference": (lambda op: op.implement("composed", len), "cannot be implemented so"),
}


@pytest.mark.parametrize("mistake", REFUSALS)
def test_options_that_do_not_fit_are_refused(mistake: str) -> None:
    give, fact = REFUSALS[mistake]
    with pytest.raises((ImplementationRefused, WrongDeclaration), match=fact):
        give(made())


def test_a_function_that_returns_something_else_is_told() -> None:
    operator = made()

    @operator.implement("function")
    def wrong(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (3 * x - y).double()

    with pytest.raises(
        WrongResult, match=r"wrong returned float64\[2, 3\] as result 0, but the reference returns float32"
    ):
        operator(torch.ones(2, 3), torch.ones(2, 3))


def _check(refusal: OpwrightError, file: Path, line: int, fact: str, hint: str) -> None:
    assert refusal.place is not None
    assert (refusal.place.file, refusal.place.line) == (str(file), line)
    assert fact in refusal.fact
    assert hint in (refusal.hint or "")
    assert len(refusal.fact.splitlines()) == 1
