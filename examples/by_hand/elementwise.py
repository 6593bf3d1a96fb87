"""Four operators of one number each, their C++ written by hand as kernels over pointers (`elementwise.cpp`).

opwright check examples/by_hand/elementwise.py:cube

The kernels are handed pointers by the names of what they stand for. What is not written by hand is derived: the second
derivative, forward mode, vmap.
"""

import torch

import opwright

SAMPLES = opwright.shapes("B S", B=(4, 64), S=(5, 128))


@opwright.operator(name="by_hand::exp", samples=SAMPLES)
def exp(x: torch.Tensor) -> torch.Tensor:
    """eˣ; the backward pass reads the result."""
    return torch.exp(x)


@opwright.operator(name="by_hand::sigmoid", samples=SAMPLES)
def sigmoid(x: torch.Tensor) -> torch.Tensor:
    """1 / (1 + e⁻ˣ); the backward pass reads the result."""
    return torch.sigmoid(x)


@opwright.operator(name="by_hand::cube", samples=SAMPLES)
def cube(x: torch.Tensor) -> torch.Tensor:
    """x³; the forward pass saves 3x², which is an intermediate, and the second derivative is right all the same."""
    return x * x * x


@opwright.operator(
    name="by_hand::mul_constant",
    samples=lambda device, dtype: [opwright.Sample((torch.randn(4, 5, device=device, dtype=dtype), 2.5))],
)
def mul_constant(x: torch.Tensor, c: float) -> torch.Tensor:
    """The number `c` times x; there is no gradient for a number."""
    return x * c


exp.implement("cpp", sources=["elementwise.cpp"], forward="exp_forward", backward="exp_backward")
sigmoid.implement("cpp", sources=["elementwise.cpp"], forward="sigmoid_forward", backward="sigmoid_backward")
cube.implement(
    "cpp",
    sources=["elementwise.cpp"],
    forward="cube_forward",
    backward="cube_backward",
    saved={"slope": lambda x: x},
)
mul_constant.implement(
    "cpp", sources=["elementwise.cpp"], forward="mul_constant_forward", backward="mul_constant_backward"
)


@mul_constant.implement("function")
class MulConstant(torch.autograd.Function):
    """The same as PyTorch's documents write it: a gradient that is None stays None."""

    @staticmethod
    def forward(ctx, x, c):  # noqa: ANN001, ANN205
        ctx.set_materialize_grads(False)
        ctx.c = c
        return x * c

    @staticmethod
    def backward(ctx, grad_y):  # noqa: ANN001, ANN205
        return (None if grad_y is None else grad_y * ctx.c), None
