"""An operator and its reference side by side: values, dtypes, shapes, strides, gradients of both orders."""

import torch
from torch import Tensor

from tests.suite.strides import stride_difference


def copies(arguments):
    """Fresh leaves with the same values, strides and questions; what occurs twice still does."""
    made = {}

    def copy(argument):
        if not isinstance(argument, Tensor):
            return argument
        if id(argument) not in made:
            made[id(argument)] = argument.detach().requires_grad_(argument.requires_grad)
        return made[id(argument)]

    return [copy(argument) for argument in arguments]


def weights(tensor, position):
    """Numbers that differ from element to element and from output to output, so that no mistake cancels."""
    count = torch.arange(tensor.numel(), dtype=tensor.dtype).reshape(tensor.shape)
    return (1 + count / max(tensor.numel(), 1)) * (position + 1)


def run(function, arguments, *, order):
    """Outputs, then gradients up to an order, of a fixed weighting of the outputs."""
    leaves = copies(arguments)
    returned = function(*leaves)
    outputs = returned if isinstance(returned, tuple) else (returned,)
    wanted = list({id(leaf): leaf for leaf in leaves if isinstance(leaf, Tensor) and leaf.requires_grad}.values())
    found = [outputs]
    values = [output for output in outputs if output.requires_grad]
    for step in range(order):
        if not values or not wanted:
            break
        weighted = sum((weights(value, position) * value).sum() for position, value in enumerate(values))
        again = step + 1 < order
        gradients = torch.autograd.grad(weighted, wanted, create_graph=again, allow_unused=True)
        found.append(gradients)
        values = [gradient for gradient in gradients if gradient is not None and gradient.requires_grad]
    return found


def assert_as_eager(operator, *arguments, rung="cpp", order=2):
    """The operator gives what its reference gives, and a certain rung gave it."""
    expected = run(operator.reference, arguments, order=order)
    actual = run(operator, arguments, order=order)
    operator(*copies(arguments))
    assert operator.last_rung == rung
    assert len(actual) == len(expected)
    for results, wanted in zip(actual, expected, strict=True):
        assert [result is None for result in results] == [result is None for result in wanted]
        for result, reference in zip(results, wanted, strict=True):
            if result is not None:
                torch.testing.assert_close(result, reference, equal_nan=True)
    for result, reference in zip(actual[0], expected[0], strict=True):
        assert not (told := stride_difference(result, reference)), told
    assert [output.requires_grad for output in actual[0]] == [output.requires_grad for output in expected[0]]


def variants(operator):
    """How many variants are loaded."""
    return next(rung.variants for rung in operator.rungs() if rung.name == "cpp")


def random(*shape, dtype=torch.float32, gradient=True, seed=0):
    """A random tensor, the same at every call."""
    tensor = torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)), dtype=torch.float64)
    return tensor.to(dtype).requires_grad_(gradient)
