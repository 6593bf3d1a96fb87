"""Emitted autograd Functions against the references they come from."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest
import torch
from torch.nn import functional

import opwright.library
from opwright.codegen.python.function import emit_function
from opwright.codegen.python.layout import ConstantParameter, FunctionLayout, TensorParameter
from opwright.errors import NoKernel
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Literal, Load, apply
from opwright.ir.expressions.integer import Condition, integer, symbol
from opwright.ir.program import Axis, Buffer, Kernel, Program, Store, size_symbol
from tests.codegen.emitted_modules import emit, load, programs_of
from tests.suite.nights import mostly_at_night

SQUARE = ("rows columns",)
PAIR = ("rows columns", "rows columns")


def lltm_cell(gates, old_cell):
    i, o, g = gates.chunk(3, dim=-1)
    cell = old_cell + functional.elu(g) * torch.sigmoid(i)
    return torch.tanh(cell) * torch.sigmoid(o), cell


def silu(x):
    return functional.silu(x)


def cube(x):
    return x**3


def gelu(x):
    return functional.gelu(x)


def gelu_tanh(x):
    return functional.gelu(x, approximate="tanh")


def elu(x):
    return functional.elu(x)


def leaky_relu(x):
    return functional.leaky_relu(x, 0.1)


def relu_of_product(x, y):
    return functional.relu(x * y) * y


def chosen(x, y):
    return torch.where(x > y, x * y, torch.exp(y))


def clamped(x):
    return x.clamp(-0.5, 0.5) * x


def linear(x, weight, bias):
    return functional.linear(x, weight, bias)


def add_bias(x, bias):
    return torch.tanh(x + bias)


def outer_scale(x, y):
    return x * y


def transposed(x, y):
    return x.mT * y


def permuted(x, y):
    return x.permute(2, 0, 1) * y


def stepped(x):
    return x[1:, ::2] * x[:-1, ::2]


def broadcast_new_axes(x, y):
    return x.unsqueeze(1) * y.unsqueeze(0).expand(x.shape[0], -1, -1)


def joined(x, y):
    return torch.cat([x * y, x + y, torch.sin(x)], dim=1)


def softplus_like(x):
    return torch.log1p(torch.exp(x))


def quotient(x, y):
    return x / (y * y + 1)


def roots(x):
    return torch.sqrt(x * x + 1) * torch.rsqrt(x * x + 2)


def product_of_matrices(x, weight):
    return torch.tanh(x @ weight.mT)


def one_output_unused(x, y):
    return x * y, torch.sin(x)


def awkward_names(torch, ctx):
    return torch * ctx + ctx.exp()


def same_twice(x):
    return x * x + x


def flattened(x):
    return (x.reshape(-1) * 2).reshape(x.shape)


def row_sums(x):
    return x.sum(0) * x.exp().sum()


def copies(x, y):
    return x.mT.contiguous(), x + y, y[1:] * 1


CASES = [
    (lltm_cell, ("rows 3columns", "rows columns")),
    (silu, SQUARE),
    (cube, SQUARE),
    (gelu, SQUARE),
    (gelu_tanh, SQUARE),
    (elu, SQUARE),
    (leaky_relu, SQUARE),
    (relu_of_product, PAIR),
    (chosen, PAIR),
    (clamped, SQUARE),
    (linear, ("rows columns", "7 columns", "7")),
    (add_bias, ("rows columns", "columns")),
    (outer_scale, ("rows 1", "columns")),
    (transposed, ("rows columns", "columns rows")),
    (permuted, ("rows columns 3", "rows columns")),
    (stepped, SQUARE),
    (broadcast_new_axes, ("rows columns", "4 columns")),
    (joined, PAIR),
    (softplus_like, SQUARE),
    (quotient, PAIR),
    (roots, SQUARE),
    (product_of_matrices, ("rows columns", "7 columns")),
    (one_output_unused, PAIR),
    (same_twice, SQUARE),
    (awkward_names, PAIR),
    (flattened, SQUARE),
    (row_sums, SQUARE),
    (copies, PAIR),
]
TRACED = {"rows": 5, "columns": 8}
OTHERS = ({"rows": 3, "columns": 6}, {"rows": 9, "columns": 10})


def parametrized_by(cases):
    return pytest.mark.parametrize(("reference", "shapes"), cases, ids=lambda value: getattr(value, "__name__", ""))


every_case = parametrized_by(CASES)
every_second_case = parametrized_by(mostly_at_night(CASES, by_day=CASES[::2]))
every_seventh_case = parametrized_by(mostly_at_night(CASES, by_day=CASES[::7]))


def shapes_at(shapes, sizes):
    known = {**sizes, "3columns": 3 * sizes["columns"]}
    return [tuple(known.get(word) or int(word) for word in shape.split()) for shape in shapes]


def arguments_at(shapes, sizes, dtype):
    generator = torch.Generator().manual_seed(0)
    tensors = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes_at(shapes, sizes)]
    return [tensor.to(dtype).requires_grad_() for tensor in tensors]


@functools.cache
def emitted(reference, shapes, dtype):
    return emit(reference, shapes_at(shapes, TRACED), dtype)


def outputs_and_gradients(function, arguments):
    returned = function(*arguments)
    outputs = returned if isinstance(returned, tuple) else (returned,)
    weights = [torch.cos(torch.arange(output.numel(), dtype=output.dtype)).view(output.shape) for output in outputs]
    loss = sum((output * weight).sum() for output, weight in zip(outputs, weights, strict=True))
    return type(returned), [*outputs, *torch.autograd.grad(loss, arguments)]


@every_case
@pytest.mark.parametrize("dtype", mostly_at_night([torch.float32, torch.float64], by_day=1), ids=["float32", "float64"])
def test_outputs_and_gradients_are_those_of_the_reference(reference, shapes, dtype):
    function = load(emitted(reference, shapes, dtype), reference.__name__)
    for sizes in (TRACED, *OTHERS):
        arguments = arguments_at(shapes, sizes, dtype)
        kind, expected = outputs_and_gradients(reference, arguments)
        emitted_kind, found = outputs_and_gradients(function, arguments)
        assert emitted_kind is kind
        torch.testing.assert_close(found, expected)


@every_second_case
def test_derivatives_exist_to_second_order(reference, shapes):
    function = load(emitted(reference, shapes, torch.float64), reference.__name__)
    arguments = arguments_at(shapes, OTHERS[0], torch.float64)
    assert torch.autograd.gradcheck(function, arguments)
    assert torch.autograd.gradgradcheck(function, arguments)


@every_seventh_case
def test_emission_is_deterministic(reference, shapes):
    first = emitted(reference, shapes, torch.float32)
    assert first == emit(reference, shapes_at(shapes, TRACED), torch.float32)


@every_case
def test_emission_fits_the_page(reference, shapes):
    assert max(map(len, emitted(reference, shapes, torch.float32).splitlines())) <= 120


def test_the_comparison_fails_on_a_wrong_backward():
    head, backward = emit(silu, [(5, 8)], torch.float64).split("def backward")
    function = load(f"{head}def backward{backward.replace('+ 1', '+ 1.001')}", "silu")
    arguments = arguments_at(SQUARE, TRACED, torch.float64)
    (_, found), (_, expected) = outputs_and_gradients(function, arguments), outputs_and_gradients(silu, arguments)
    torch.testing.assert_close(found[0], expected[0])
    with pytest.raises(AssertionError):
        torch.testing.assert_close(found[1], expected[1])


def test_third_derivative():
    function = load(emit(cube, [(5, 8)], torch.float64), "cube")
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    value = function(x)
    for expected in (3 * x**2, 6 * x, torch.full_like(x, 6)):
        (value,) = torch.autograd.grad(value.sum(), x, create_graph=True)
        torch.testing.assert_close(value, expected)


def test_second_derivative_is_finite_where_an_exponential_would_overflow():
    function = load(emit(elu, [(5, 8)], torch.float32), "elu")
    x = torch.tensor([[1000.0, -1.0]], requires_grad=True)
    (gradient,) = torch.autograd.grad(function(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(gradient.sum(), x)
    torch.testing.assert_close(second, torch.tensor([[0.0, 0.36787944]]))


def test_an_output_that_was_not_used_adds_nothing():
    function = load(emit(one_output_unused, [(5, 8), (5, 8)], torch.float64), "one_output_unused")
    x, y = arguments_at(PAIR, TRACED, torch.float64)
    of_x, of_y = torch.autograd.grad(function(x, y)[1].sum(), (x, y), allow_unused=True)
    torch.testing.assert_close(of_x, torch.cos(x))
    assert of_y is None


def test_outputs_have_memory_of_their_own():
    function = load(emit(copies, [(5, 8), (5, 8)], torch.float64), "copies")
    tensors = [torch.randn(5, 8, dtype=torch.float64) for _ in range(2)]
    outputs = function(*tensors)
    assert len({tensor.untyped_storage().data_ptr() for tensor in (*tensors, *outputs)}) == 5


@pytest.mark.filterwarnings("ignore:.*Profiler clears events")  # of PyTorch 2.11
def test_gradients_are_computed_where_they_are_needed():
    text = emit(product_of_matrices, [(5, 8), (7, 8)], torch.float64)
    assert "if ctx.needs_input_grad[0]:" in text
    function = load(text, "product_of_matrices")
    x, weight = arguments_at(("rows columns", "7 columns"), TRACED, torch.float64)
    with torch.profiler.profile() as profile:
        function(x.detach(), weight).sum().backward()
    assert sum(event.count for event in profile.key_averages() if event.key == "aten::mm") == 3


def test_the_cell_reads_as_a_person_would_write_it():
    lines = [line.strip() for line in emit(lltm_cell, [(16, 384), (16, 128)], torch.float32).splitlines()]
    assert "g = gates[:, 2*old_cell_size_1:]" in lines
    assert "cell = old_cell + torch.where(g > 0, g, torch.expm1(torch.clamp(g, max=0))) * torch.sigmoid(i)" in lines
    assert "output_0 = torch.tanh(cell) * torch.sigmoid(o)" in lines


def test_sizes_that_do_not_fit_are_refused():
    function = load(emit(lltm_cell, [(16, 384), (16, 128)], torch.float32), "lltm_cell")
    with pytest.raises(ValueError, match=r"lltm_cell is not written for sizes \[2, 12\], \[2, 3\]"):
        function(torch.zeros(2, 12), torch.zeros(2, 3))


def test_constants_have_the_value_they_were_traced_with():
    forward, backward, layout = programs_of(leaky_relu, [(5, 8)], torch.float32)
    parameters = (*layout.parameters, ConstantParameter("slope", 0.1), ConstantParameter("mode", None))
    text = emit_function("leaky_relu", forward, backward, replace(layout, parameters=parameters))
    function = load(text, "leaky_relu")
    x = torch.randn(2, 3)
    torch.testing.assert_close(function(x), leaky_relu(x))
    with pytest.raises(ValueError, match=r"leaky_relu is written here for slope=0\.1, not 0\.2"):
        function(x, 0.2)
    with pytest.raises(ValueError, match="mode=None, not 'other'"):
        function(x, mode="other")


def test_a_program_without_backward_gives_outputs_without_gradient():
    forward, _, layout = programs_of(silu, [(5, 8)], torch.float32)
    function = load(emit_function("silu", forward, None, layout), "silu")
    x = torch.randn(2, 3, requires_grad=True)
    assert not function(x).requires_grad
    torch.testing.assert_close(function(x), silu(x.detach()))


def test_integer_outputs_are_marked_as_not_differentiable():
    size = size_symbol("x", 0)
    x, at = Buffer("x", DType.FLOAT32, (size,)), (symbol("i0"),)
    positive = apply("greater", Load("x", at, DType.FLOAT32), Literal(0.0, DType.FLOAT32))
    doubled = apply("multiply", Load("x", at, DType.FLOAT32), Literal(2.0, DType.FLOAT32))
    kernel = Kernel(
        "y", (Buffer("y", DType.FLOAT32, (size,)), Buffer("mask", DType.BOOL, (size,))), (Axis("i0", size),), (),
        (Store("y", at, doubled), Store("mask", at, positive)),
    )  # fmt: skip
    gradient = Buffer("grad_output_0", DType.FLOAT32, (size_symbol("grad_output_0", 0),))
    scaled = apply("multiply", Load("grad_output_0", at, DType.FLOAT32), Literal(2.0, DType.FLOAT32))
    target = Buffer("grad_x", DType.FLOAT32, (size,))
    back = Kernel("grad_x", (target,), (Axis("i0", size),), (), (Store("grad_x", at, scaled),))
    same = Condition("==", size_symbol("grad_output_0", 0), size)
    forward = Program("forward", (x,), (), (kernel,), ("y", "mask"), ())
    backward = Program("backward", (x, gradient), (), (back,), ("grad_x",), (same,))
    parameters, cotangents = (TensorParameter("x", "grad_x"),), ("grad_output_0", None)
    layout = FunctionLayout(parameters, False, "double", "a.py:1", "0.1.0", cotangents)
    function = load(emit_function("double", forward, backward, layout), "double")
    argument = torch.tensor([1.0, -1.0], requires_grad=True)
    y, mask = function(argument)
    assert (y.requires_grad, mask.requires_grad, mask.tolist()) == (True, False, [True, False])
    y.sum().backward()
    assert argument.grad.tolist() == [2.0, 2.0]


def test_an_index_that_no_view_has_is_refused():
    size = size_symbol("x", 0)
    value = Load("x", (symbol("i0") * symbol("i0"),), DType.FLOAT32)
    target = Buffer("y", DType.FLOAT32, (integer(2),))
    kernel = Kernel("y", (target,), (Axis("i0", integer(2)),), (), (Store("y", (symbol("i0"),), value),))
    program = Program("squares", (Buffer("x", DType.FLOAT32, (size,)),), (), (kernel,), ("y",), ())
    layout = FunctionLayout((TensorParameter("x"),), True, "squares", "a.py:1", "0.1.0")
    with pytest.raises(NoKernel, match="index i0\\*i0 is not a multiple of an axis"):
        emit_function("squares", program, None, layout)


def test_long_names_are_subscripted_as_short_ones():
    """A comma behind the only index of `shape[0]` would make a tuple of it."""
    long = "n" * 60
    text = f"def {long}(x, {long}):\n    return x * {long}.mean(-1, keepdim=True)\n"
    namespace = {}
    exec(text, namespace)
    emitted = load(emit(namespace[long], [(5, 8), (5, 8)], torch.float64), long)
    x, y = torch.randn(3, 4, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(emitted(x, y), namespace[long](x, y))
    (gradient,) = torch.autograd.grad(emitted(x, y).sin().sum(), y)
    (expected,) = torch.autograd.grad(namespace[long](x, y).sin().sum(), y)
    torch.testing.assert_close(gradient, expected)


def test_tensors_that_are_made_inside_are_where_the_arguments_are():
    """On a GPU as on the meta device: the trace is on the processor."""
    logits, target = torch.randn(4, 5, requires_grad=True), torch.tensor([0, 4, -100, 2])
    rung = opwright.library.smooth_cross_entropy.on("function")
    torch.testing.assert_close(rung(logits, target), opwright.library.smooth_cross_entropy.reference(logits, target))
    far = logits.detach().to("meta").requires_grad_()
    loss = rung(far, target.to("meta"))
    assert [loss.device.type, torch.autograd.grad(loss, far)[0].device.type] == ["meta", "meta"]
