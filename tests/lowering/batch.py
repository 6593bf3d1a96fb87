"""Several functions as one operator, so that a table of them costs few builds: each gets tensors of its own."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import LambdaType
from typing import Any

import torch

from opwright.api.operator import Operator
from opwright.settings import Settings
from opwright.tracing.interface.signature import Kind, Parameter, Signature

Function = Callable[..., torch.Tensor]


@dataclass(frozen=True, slots=True)
class Results:
    """Of one function: what it returned, and the gradient of each operand."""

    output: torch.Tensor
    gradients: tuple[torch.Tensor | None, ...]


@functools.cache
def arity(function: Function) -> int:
    """How many tensors a sample call takes, one or two."""
    if isinstance(function, LambdaType) and function.__name__ == "<lambda>":
        return sum(p.default is p.empty for p in inspect.signature(function).parameters.values())
    for dtype in (torch.float32, torch.int64, torch.complex64):  # some refuse others
        try:
            function(torch.ones(4, 6, dtype=dtype), torch.ones(4, 6, dtype=dtype))
        except TypeError:
            return 1
        except RuntimeError:
            continue
        return 2
    raise ValueError(f"{function} takes neither one nor two tensors")


def compiled(name: str, functions: Mapping[Any, Function], settings: Settings) -> Operator:
    """One operator for all functions, one after another."""
    arities = [arity(function) for function in functions.values()]
    signature = Signature(
        tuple(Parameter(f"x{position}", Kind.TENSOR, False) for position in range(sum(arities))), len(functions)
    )

    def batch(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        given = iter(tensors)
        return tuple(
            function(*[next(given) for _ in range(count)])
            for function, count in zip(functions.values(), arities, strict=True)
        )

    return Operator(batch, name=name, signature=signature, settings=settings)


def run_compiled(
    operator: Operator, functions: Mapping[Any, Function], operands: Sequence[torch.Tensor]
) -> dict[Any, Results]:
    """Call the operator with the same operands for every function, and differentiate."""
    given = [[_leaf(operand) for operand in operands[: arity(function)]] for function in functions.values()]
    outputs = operator(*[tensor for tensors in given for tensor in tensors])
    outputs = (outputs,) if isinstance(outputs, torch.Tensor) else outputs
    flat = [tensor for tensors in given for tensor in tensors if tensor.requires_grad]
    differentiable = [output for output in outputs if output.requires_grad]
    found: dict[int, torch.Tensor | None] = {}
    if differentiable:
        gradients = torch.autograd.grad(
            differentiable, flat, [cotangents(o) for o in differentiable], allow_unused=True
        )
        found = {id(tensor): gradient for tensor, gradient in zip(flat, gradients, strict=True)}
    return {
        key: Results(output.detach(), tuple(found.get(id(tensor)) for tensor in tensors))
        for key, output, tensors in zip(functions, outputs, given, strict=True)
    }


def run_eager(function: Function, operands: Sequence[torch.Tensor]) -> Results:
    """Call one function and differentiate."""
    given = [_leaf(operand) for operand in operands[: arity(function)]]
    output = function(*given)
    if not output.requires_grad:
        return Results(output, (None,) * len(given))
    wanted = [tensor for tensor in given if tensor.requires_grad]
    return Results(output.detach(), torch.autograd.grad(output, wanted, cotangents(output), allow_unused=True))


def cotangents(output: torch.Tensor) -> torch.Tensor:
    """A cotangent: positive, and neither large nor small."""
    return torch.linspace(0.5, 1.5, output.numel(), dtype=torch.float64).view(output.shape).to(output.dtype)


def _leaf(operand: torch.Tensor) -> torch.Tensor:
    """The same elements in the same memory, as a variable of its own."""
    return operand.detach().requires_grad_(operand.requires_grad)
