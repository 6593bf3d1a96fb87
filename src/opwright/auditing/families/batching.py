"""vmap: batches along every axis, of all inputs or some, nested, in chunks, and together with derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch.func import grad, jvp, vjp, vmap

from opwright.auditing.case import Case, loss_of
from opwright.auditing.families.functional import batched
from opwright.auditing.judge import Judge
from opwright.auditing.witness import Seen
from opwright.checking.calls import random_tangents
from opwright.checking.finding import Skipped


def every_input(case: Case, in_dim: int = 0, out_dim: int = 0, **options: Any) -> Seen:
    """Batch all inputs."""
    return _mapped(case, [in_dim] * len(case.inputs), out_dims=out_dim, **options)


def second_axis(case: Case) -> Seen:
    """Batch along the second axis."""
    if not all(tensor.dim() for tensor in case.inputs):
        raise Skipped("an input has no axis")
    return every_input(case, in_dim=1, out_dim=0)


def one_input(case: Case, position: int) -> Seen:
    """Batch the first or the last input; the others are the same for all."""
    if len(case.inputs) < 2:
        raise Skipped("there is one input only")
    in_dims: list[int | None] = [None] * len(case.inputs)
    in_dims[position] = 0
    return _mapped(case, in_dims)


def different_axes(case: Case) -> Seen:
    """Batch the inputs along the first and the last axis in turn."""
    if len(case.inputs) < 2:
        raise Skipped("there is one input only")
    return _mapped(case, [(0, -1)[index % 2] for index in range(len(case.inputs))])


def nested(case: Case) -> Seen:
    """Nest `vmap` in `vmap`."""
    twice = [batched(batched(tensor), axis=-1) for tensor in case.inputs]
    return {"output": vmap(vmap(case), in_dims=-1)(*twice)}


def every_tensor(case: Case) -> Seen:
    """Batch integers and booleans too."""
    if len(case.positions) == len(case.tensors):
        raise Skipped("every tensor can have a gradient, so the other rows batch them all")
    stacked = [batched(t) if i in case.positions else torch.stack([t] * 3) for i, t in enumerate(case.tensors)]
    return {"output": vmap(lambda *tensors: case.call(tensors))(*stacked)}


def of_gradient(case: Case) -> Seen:
    """`vmap` of `grad`."""
    many = vmap(grad(case.loss, tuple(range(len(case.inputs)))))
    return {"gradient of input": many(*map(batched, case.inputs))}


def under_gradient(case: Case) -> Seen:
    """`grad` of `vmap`."""

    def loss(*inputs: torch.Tensor) -> torch.Tensor:
        return loss_of(vmap(case.floats)(*inputs))

    inputs = tuple(map(batched, case.inputs))
    return {"gradient of input": grad(loss, tuple(range(len(inputs))))(*inputs)}


def under_backward(case: Case) -> Seen:
    """A plain backward pass through `vmap`."""
    inputs = [batched(tensor).requires_grad_() for tensor in case.inputs]
    loss_of(vmap(case.floats)(*inputs)).backward()
    return {"gradient of input": [tensor.grad for tensor in inputs]}


def of_jvp(case: Case) -> Seen:
    """`vmap` of `jvp` over the tangents."""
    if not case.inputs:
        raise Skipped("no input can have a tangent")
    tangents = [batched(tangent) for tangent in random_tangents(case.inputs)]
    many = vmap(lambda *along: jvp(case.floats, case.inputs, along)[1])
    return {"tangent of output": many(*tangents)}


def of_vjp(case: Case) -> Seen:
    """`vmap` of `vjp` over the cotangents."""
    outputs, pullback = vjp(case.floats, *case.inputs)  # type: ignore[misc]
    cotangents = tuple(batched(cotangent) for cotangent in random_tangents(outputs))
    return {"gradient of input": vmap(pullback)(cotangents)}


def _mapped(case: Case, in_dims: Sequence[int | None], **options: Any) -> Seen:
    if not case.inputs:
        raise Skipped("no input is of floating point")
    inputs = [
        tensor if axis is None else batched(tensor, axis) for tensor, axis in zip(case.inputs, in_dims, strict=True)
    ]
    return {"output": vmap(case, in_dims=tuple(in_dims), **options)(*inputs)}


JUDGES = (
    Judge("in_dims=0", every_input, differentiates=False),
    Judge("in_dims=1", second_axis, differentiates=False),
    Judge("in_dims=-1, out_dims=-1", partial(every_input, in_dim=-1, out_dim=-1), differentiates=False),
    Judge("in_dims=None but the first", partial(one_input, position=0), differentiates=False),
    Judge("in_dims=None but the last", partial(one_input, position=-1), differentiates=False),
    Judge("in_dims=0 and -1 in turn", different_axes, differentiates=False),
    Judge("integers too", every_tensor, differentiates=False),
    Judge("nested", nested, differentiates=False),
    Judge("chunk_size", partial(every_input, chunk_size=2), differentiates=False),
    Judge("vmap of grad", of_gradient),
    Judge("grad of vmap", under_gradient),
    Judge("backward through vmap", under_backward),
    Judge("vmap of jvp", of_jvp),
    Judge("vmap of vjp", of_vjp),
)
