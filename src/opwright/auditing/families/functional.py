"""torch.func: every transform, and transforms of transforms."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.func import functionalize, grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap

from opwright.auditing.case import Case, Tensors, tensors_of
from opwright.auditing.judge import Judge
from opwright.auditing.modules import Layer
from opwright.auditing.witness import Seen
from opwright.checking.calls import random_tangents
from opwright.checking.finding import Skipped

_BATCH = 3


def vector_jacobian(case: Case) -> Seen:
    """`vjp` with random cotangents."""
    outputs, pullback = vjp(case.floats, *case.inputs)  # type: ignore[misc]
    return {"output": outputs, "gradient of input": pullback(tuple(random_tangents(outputs)))}


def jacobian_vector(case: Case) -> Seen:
    """`jvp` with random tangents."""
    outputs, tangents = jvp(case.floats, case.inputs, _tangents(case))  # type: ignore[misc]
    return {"output": outputs, "tangent of output": tangents}


def jacobian_vector_twice(case: Case) -> Seen:
    """`jvp` of `jvp`."""

    def inner(*inputs: torch.Tensor) -> Tensors:
        return tensors_of(jvp(case.floats, inputs, _tangents(case)))

    return {"tangents": jvp(inner, case.inputs, _tangents(case)[::-1] if _alike(case) else _tangents(case))}


def linearized(case: Case) -> Seen:
    """`linearize`, and a call of the linear function that it returns."""
    outputs, push = linearize(case.floats, *case.inputs)
    return {"output": outputs, "tangent of output": push(*_tangents(case))}


def jvp_under_gradient(case: Case) -> Seen:
    """`grad` of `jvp`: reverse over forward."""

    def along(*inputs: torch.Tensor) -> torch.Tensor:
        tangent: torch.Tensor = jvp(case.loss, inputs, _tangents(case))[1]
        return tangent

    return {"gradient of tangent": grad(along, _all(case))(*case.inputs)}


def jacobian(transform: Callable[..., Any], case: Case, **options: Any) -> Seen:
    """All first derivatives of all outputs."""
    return {"Jacobian": transform(case.floats, _all(case), **options)(*case.inputs)}


def second_jacobian(outer: Callable[..., Any], inner: Callable[..., Any], case: Case) -> Seen:
    """All second derivatives of the loss."""
    return {"Hessian": outer(inner(case.loss, _all(case)), _all(case))(*case.inputs)}


def with_other_parameters(case: Case) -> Seen:
    """`functional_call` of a module that calls the operator, and `grad` with respect to its parameters."""
    layer = Layer(case)
    parameters = {name: 0.5 * parameter.detach() for name, parameter in layer.named_parameters()}
    return {"gradient": grad(layer.loss)(parameters, case.inputs[0])}


def per_sample(case: Case, **options: Any) -> Seen:
    """Gradients of the parameters of a module for each sample of a batch."""
    layer = Layer(case)
    parameters = {name: parameter.detach() for name, parameter in layer.named_parameters()}
    many = vmap(grad(layer.loss), in_dims=(None, 0), **options)
    return {"per-sample gradient": many(parameters, batched(case.inputs[0]))}


def batched(tensor: torch.Tensor, axis: int = 0) -> torch.Tensor:
    """Stack a tensor and scaled-down copies along a new axis."""
    return torch.stack([tensor * (1 - index / 8) for index in range(_BATCH)], dim=axis)


def _slope(case: Case, *inputs: torch.Tensor) -> torch.Tensor:
    return sum((part.abs().square().sum() for part in grad(case.loss, _all(case))(*inputs)), start=torch.zeros(()))


def _all(case: Case) -> tuple[int, ...]:
    return tuple(range(len(case.inputs)))


def _tangents(case: Case) -> Tensors:
    if not case.inputs:
        raise Skipped("no input can have a tangent")
    return tuple(random_tangents(case.inputs))


def _alike(case: Case) -> bool:
    return len({(tensor.shape, tensor.dtype) for tensor in case.inputs}) == 1


JUDGES = (
    Judge("grad", lambda case: {"gradient of input": grad(case.loss, _all(case))(*case.inputs)}),
    Judge(
        "grad of grad",
        lambda case: {"second derivative for input": grad(partial(_slope, case), _all(case))(*case.inputs)},
    ),
    Judge("vjp", vector_jacobian),
    Judge("jvp", jacobian_vector),
    Judge("jvp of jvp", jacobian_vector_twice),
    Judge("linearize", linearized),
    Judge(
        "jvp of grad",
        lambda case: {"tangent of gradient": jvp(grad(case.loss, _all(case)), case.inputs, _tangents(case))},
    ),
    Judge("grad of jvp", jvp_under_gradient),
    Judge("jacrev", partial(jacobian, jacrev)),
    Judge("jacrev, chunk_size", partial(jacobian, jacrev, chunk_size=2)),
    Judge("jacfwd", partial(jacobian, jacfwd)),
    Judge("jacfwd of jacrev", partial(second_jacobian, jacfwd, jacrev)),
    Judge("jacrev of jacrev", partial(second_jacobian, jacrev, jacrev)),
    Judge("jacrev of jacfwd", partial(second_jacobian, jacrev, jacfwd)),
    Judge("jacfwd of jacfwd", partial(second_jacobian, jacfwd, jacfwd)),
    Judge("hessian", lambda case: {"Hessian": hessian(case.loss, _all(case))(*case.inputs)}),
    Judge("functionalize", lambda case: {"output": functionalize(case)(*case.inputs)}, differentiates=False),
    Judge("functional_call", with_other_parameters),
    Judge("per-sample gradients", per_sample),
    Judge("per-sample gradients, chunk_size", partial(per_sample, chunk_size=2)),
)
