"""Rungs written by hand: which calls they serve, and what comes from the derivation."""

from __future__ import annotations

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import opwright
from opwright.errors import NoKernel, RungMissing
from tests.handwritten.planted import BACKWARD, RIGHT, made

STRIDED = """\
template <class T>
void forward(const T* x, const T* y, T* z, int64_t x_size_0, int64_t x_size_1, int64_t x_stride_0, int64_t x_stride_1) {
  for (int64_t i = 0; i < x_size_0; ++i)
    for (int64_t j = 0; j < x_size_1; ++j)
      z[i * x_size_1 + j] = 3 * x[i * x_stride_0 + j * x_stride_1] - y[i * x_size_1 + j];
}
"""
FLOAT_ONLY = RIGHT.replace("template <class T>\n", "").replace("T*", "float*")
OVERLOADED = FLOAT_ONLY + FLOAT_ONLY.replace("float*", "double*")


@pytest.fixture(scope="module")
def both() -> opwright.Operator:
    operator = made("both")
    operator.implement("cpp", source=RIGHT + BACKWARD, forward="forward", backward="backward")
    return operator


def test_the_rung_is_written_and_serves(both: opwright.Operator) -> None:
    assert [(rung.name, rung.origin) for rung in both.rungs() if rung.name == "cpp"] == [("cpp", "written")]
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    assert torch.equal(both(x, y), 3 * x - y)
    assert both.last_rung == "cpp"
    assert both.on("cpp")(x=x, y=y).equal(3 * x - y)


def test_its_source_is_the_authors_and_what_calls_it(both: opwright.Operator) -> None:
    text = both.source("cpp")
    assert text.startswith(f"// <source of both>\n{RIGHT}")
    assert text.count("for (int64_t k = 0") == 2
    assert "void opwright_entry(const float* x, const float* y, float* z, int64_t n) {\n  forward(x, y, z, n);" in text
    assert "backward(grad_z, grad_x, grad_y, n);" in text
    assert "forward(x, y, z, n)" not in both.source("cuda")


class Negated(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return 3 * x - y


@pytest.mark.parametrize(
    ("function", "beginning"),
    [(Negated, "class Negated(torch.autograd.Function):"), (made, "def made(name: str"), (torch.sub, None)],
)
def test_a_function_is_shown_as_it_is_written(function, beginning: str | None) -> None:
    operator = made("shown")
    operator.implement("function", function)
    if beginning is None:
        with pytest.raises(RungMissing, match="the source of sub cannot be read"):
            operator.source("function")
    else:
        assert operator.source("function").startswith(beginning)


def test_judged_like_any_rung(both: opwright.Operator) -> None:
    verdict = both.check(dtypes=(torch.float32,))
    assert verdict.passed
    assert {row.check for row in verdict.rows if row.rung == "cpp" and row.status == "passed"} >= {
        "gradients",
        "gradgradcheck",
        "forward mode",
        "layouts",
        "served",
    }


def test_a_wrong_backward_is_found() -> None:
    operator = made("wrong_backward")
    operator.implement("cpp", source=RIGHT + BACKWARD.replace("-grad_z", "+grad_z"), backward="backward")
    failed = {(row.rung, row.check) for row in operator.check(dtypes=(torch.float32,)).rows if row.status == "failed"}
    assert {("cpp", "gradients"), ("operator", "gradients"), ("cpp", "gradcheck")} <= failed


def test_a_backward_that_is_left_out_is_derived() -> None:
    operator = made("forward_only")
    operator.implement("cpp", source=RIGHT)
    x, y = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4, requires_grad=True)
    of_x, of_y = torch.autograd.grad(operator(x, y).sum(), (x, y))
    assert torch.equal(of_x, torch.full((3, 4), 3.0))
    assert torch.equal(of_y, torch.full((3, 4), -1.0))


def test_a_gradient_that_is_left_out_is_derived() -> None:
    operator = made("one_gradient")
    head = "void backward(const float* grad_z, float* grad_x, int64_t n)"
    one = f"{head} {{ for (int64_t k = 0; k < n; ++k) grad_x[k] = 5; }}"
    operator.implement("cpp", source=RIGHT + one, backward="backward")
    x, y = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4, requires_grad=True)
    of_x, of_y = torch.autograd.grad(operator(x, y).sum(), (x, y))
    assert torch.equal(of_x, torch.full((3, 4), 5.0))  # the author's, right or wrong
    assert torch.equal(of_y, torch.full((3, 4), -1.0))  # derived


def test_under_transforms_it_is_derived(both: opwright.Operator) -> None:
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    ones = torch.ones(3, 4)
    assert torch.equal(torch.func.jvp(both, (x, y), (ones, ones))[1], torch.full((3, 4), 2.0))
    assert torch.equal(torch.func.grad(lambda x: both(x, y).sum())(x), torch.full((3, 4), 3.0))
    torch.testing.assert_close(torch.vmap(both)(x, y), 3 * x - y)


def test_signatures_that_it_is_not_for_are_derived() -> None:
    operator = made("float_only")
    operator.implement("cpp", source=FLOAT_ONLY)
    x = torch.randn(3, 4, dtype=torch.float64)
    assert torch.equal(operator(x, x), 3 * x - x)
    with pytest.raises(NoKernel, match="forward is not written for x in float64, y in float64, z in float64"):
        operator.on("cpp")(x, x)


def test_overloads_are_for_their_dtypes() -> None:
    operator = made("overloaded")
    operator.implement("cpp", source=OVERLOADED)
    for dtype in (torch.float32, torch.float64):
        x = torch.randn(3, 4, dtype=dtype)
        assert torch.equal(operator.on("cpp")(x, x), 3 * x - x)
    with pytest.raises(NoKernel, match="float32, y in float64"):
        operator.on("cpp")(torch.randn(3, 4), torch.randn(3, 4, dtype=torch.float64))


def test_what_takes_strides_is_given_what_there_is() -> None:
    operator = made("strided")
    operator.implement("cpp", source=STRIDED)
    x, y = torch.randn(4, 3).t(), torch.randn(4, 3).t()
    assert torch.equal(operator.on("cpp")(x, y), 3 * x - y)
    expanded = torch.randn(3, 1).expand(3, 4)
    assert torch.equal(operator.on("cpp")(expanded, y), 3 * expanded - y)
    with pytest.raises(NoKernel, match="forward asks for size 1 of 'x', which has 1"):
        operator.on("cpp")(torch.randn(3), torch.randn(3))


def test_channels_last_is_copied_into() -> None:
    operator = made("channels")
    operator.implement("cpp", source=RIGHT, layouts=dict.fromkeys("xyz", "channels_last"))
    x, y = torch.randn(2, 3, 4, 5), torch.randn(2, 3, 4, 5)
    z = operator.on("cpp")(x, y)
    assert z.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(z, 3 * x - y)


def test_a_lazy_negation_is_resolved(both: opwright.Operator) -> None:
    x = torch.complex(torch.randn(3, 4), torch.randn(3, 4)).conj().imag
    assert x.is_neg()
    assert torch.equal(both.on("cpp")(x, x), 3 * x - x)


def test_wrong_sizes_are_refused_in_the_words_of_the_reference(both: opwright.Operator) -> None:
    for call in (both, both.on("cpp")):
        with pytest.raises(RuntimeError, match=r"The size of tensor a \(3\) must match"):
            call(torch.randn(3), torch.randn(4))


def test_a_number_that_an_int_does_not_hold_is_refused() -> None:
    operator = opwright.Operator(_times, name="tests::times")
    operator.implement("cpp", source="void forward(const float* x, float* z, int c) { z[0] = c * x[0]; }")
    assert operator.on("cpp")(torch.ones(1), 3).item() == 3
    with pytest.raises(NoKernel, match="declares 'c' with a type that cannot hold 2147483648"):
        operator.on("cpp")(torch.ones(1), 2**31)


HELD = {
    "int64_t": ([-(2**63), 2**63 - 1, True], [2**63, 0.5]),
    "uint8_t": ([0, 255], [256, -1, 1.0]),
    "double": ([0.1, 1e300, 2**53, float("inf")], [2**53 + 1]),
    "float": ([0.5, 2**24, float("inf"), float("nan")], [0.1, 1e300, 2**24 + 1]),  # beside tensors of doubles
}


def _plus(x: torch.Tensor, c: float) -> torch.Tensor:
    return x + c


@pytest.mark.parametrize("kind", HELD)
def test_numbers_are_those_that_their_type_holds(kind: str) -> None:
    operator = opwright.Operator(_plus, name=f"tests::plus_{kind}")
    operator.implement("cpp", source=f"void forward(const double* x, double* z, {kind} c) {{ z[0] = x[0] + c; }}")
    taken, refused = HELD[kind]
    x = torch.zeros(1, dtype=torch.double)
    for number in taken:
        assert torch.equal(operator.on("cpp")(x, number).nan_to_num(7), _plus(x, number).nan_to_num(7))
    for number in refused:
        with pytest.raises(NoKernel, match="cannot hold"):
            operator.on("cpp")(x, number)


def test_a_float_beside_floats_is_rounded_as_they_are() -> None:
    operator = opwright.Operator(_plus, name="tests::plus_in_single_precision")
    operator.implement("cpp", source="void forward(const float* x, float* z, float c) { z[0] = x[0] + c; }")
    assert torch.equal(operator.on("cpp")(torch.zeros(1), 0.1), torch.tensor([0.1]))
    for refused in (1e300, torch.tensor(2.0)):
        with pytest.raises(NoKernel, match="cannot hold"):
            operator.on("cpp")(torch.zeros(1), refused)


def test_a_derived_backward_under_a_checkpoint() -> None:
    """What a node has saved can be asked for once there."""
    operator = made("in_a_checkpoint")
    operator.implement("cpp", source=RIGHT)
    x, y = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4, requires_grad=True)
    of_x, of_y = torch.autograd.grad(checkpoint(operator, x, y, use_reentrant=False).sum(), (x, y))
    assert torch.equal(of_x, torch.full((3, 4), 3.0))
    assert torch.equal(of_y, torch.full((3, 4), -1.0))


def test_a_written_backward_operator_serves_second_order() -> None:
    operator = made("more")
    operator.implement("cpp", source=RIGHT + BACKWARD, backward="backward")
    more = "void forward(const float* grad_output, float* a, float* b, const float* x, const float* y, int64_t n) {"
    body = " for (int64_t k = 0; k < n; ++k) a[k] = 30 * grad_output[k], b[k] = -grad_output[k]; }"
    operator.vjp("x", "y").implement("cpp", source=more + body)
    x, y = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    of_x, _ = torch.autograd.grad(operator(x, y).sum(), (x, y), create_graph=True)
    assert torch.equal(of_x, torch.full((3,), 30.0))


def test_at_the_dispatcher_results_lie_as_those_of_the_function(both: opwright.Operator) -> None:
    x = torch.randn(4, 3).t()
    made_there = both.overload(x, x)
    assert made_there.stride() == x.stride()
    assert torch.equal(made_there, 3 * x - x)
    assert both.last_rung == "cpp"


def test_a_changed_header_is_built_again(tmp_path) -> None:
    (tmp_path / "factor.h").write_text("#define FACTOR 3\n")
    file = tmp_path / "kernel.cpp"
    file.write_text('#include "factor.h"\n' + RIGHT.replace("3 *", "FACTOR *"))
    found = []
    for factor in (3, 4):
        (tmp_path / "factor.h").write_text(f"#define FACTOR {factor}\n")
        operator = made(f"headers_{factor}")
        operator.implement("cpp", sources=[file])
        found.append(operator(torch.ones(2), torch.ones(2))[0].item())
    assert found == [2, 3]


def _times(x: torch.Tensor, c: int) -> torch.Tensor:
    return x * c
