"""A block of two layers, trained in one process, under DDP, under FSDP2 and with tensor and sequence parallelism."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.distributed.tensor.placement_types import _StridedShard
from torch.nn.parallel import DistributedDataParallel

import opwright
from opwright.optim.serving import buckets, plan
from tests.sharding import functions

Make = Callable[[Any], torch.optim.Optimizer]

STEPS, BATCH, LENGTH, WIDTH = 5, 4, 6, 8
_norm = opwright.operator(functions.spread_norm, name="tests::block_norm")
_gate = opwright.operator(functions.spread_gate, name="tests::block_gate")


class Norm(nn.Module):
    """An operator with a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalize rows."""
        return _norm(x, self.weight)


class Layer(nn.Module):
    """A gated layer around operators."""

    def __init__(self, inner: int) -> None:
        super().__init__()
        self.norm = Norm()
        self.left, self.right = (nn.Linear(WIDTH, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalize, gate, add."""
        inner = self.norm(x)
        return x + self.down(_gate(self.left(inner), self.right(inner)))


def block(inner: int = 2 * WIDTH) -> nn.Sequential:
    """The same block in every process."""
    torch.manual_seed(0)
    return nn.Sequential(Layer(inner), Layer(inner))


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    """The same batch in every process."""
    generator = torch.Generator().manual_seed(1)
    x, y = (torch.randn(BATCH, LENGTH, WIDTH, generator=generator) for _ in range(2))
    return x, y


def losses(
    model: nn.Module,
    x: torch.Tensor,
    y: torch.Tensor,
    own: Callable[[torch.Tensor], torch.Tensor],
    make: Make = lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.9),
) -> list[float]:
    """The losses of five steps; `own` makes the loss of all processes of one's own."""
    optimizer = make(model.parameters())
    found = []
    for _ in range(STEPS):
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append(own(loss.detach()).item())
    return found


def _mean(loss: torch.Tensor) -> torch.Tensor:
    dist.all_reduce(loss)
    return loss / dist.get_world_size()


def part(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.chunk(dist.get_world_size())[dist.get_rank()]


def by_ddp(mesh: Any) -> list[float]:
    """Each process has a part of the batch."""
    del mesh
    x, y = map(part, batch())
    return losses(DistributedDataParallel(block()), x, y, _mean)


def by_fsdp(mesh: Any) -> list[float]:
    """The same, and a part of each parameter."""
    model = block()
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    x, y = map(part, batch())
    return losses(model, x, y, _mean)


def _in_parts(model: nn.Module, mesh: Any) -> nn.Module:
    """Parts of the products, and of the sequence around them; operators meet DTensors."""
    for layer in model.children():
        parallelize_module(
            layer,
            mesh,
            {
                "norm": SequenceParallel(use_local_output=False),
                "left": ColwiseParallel(input_layouts=Shard(1), use_local_output=False),
                "right": ColwiseParallel(input_layouts=Shard(1), use_local_output=False),
                "down": RowwiseParallel(input_layouts=Shard(-1), output_layouts=Shard(1), use_local_output=False),
            },
        )
    return parallelize_module(
        model, mesh, PrepareModuleInput(input_layouts=Replicate(), desired_input_layouts=Shard(1))
    )


class Gathered(nn.Module):
    """A model whose result is made whole."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run it."""
        return self.inner(x).full_tensor()  # type: ignore[no-any-return]


def by_tp(mesh: Any) -> list[float]:
    """Parts of the products and of the sequence."""
    return losses(Gathered(_in_parts(block(), mesh)), *batch(), lambda loss: loss)


def by_fsdp_and_tp(mesh: Any, inner: int, *make: Make) -> list[float]:
    """A part of the batch along one dimension of the mesh, and parts of products and sequence along the other."""
    model = _in_parts(block(inner), mesh["tensor"])
    for layer in (*model.children(), model):
        fully_shard(layer, mesh=mesh["data"])
    data = mesh["data"]
    x, y = (one.chunk(data.size())[data.get_local_rank()] for one in batch())
    return losses(Gathered(model), x, y, _mean, *make)


def judge_grid(count: int, inner: int) -> list[str]:
    """The same on a mesh of two dimensions, where FSDP2 cuts what tensor parallelism has cut."""
    mesh = init_device_mesh("cpu", (2, count // 2), mesh_dim_names=("data", "tensor"))
    expected, found = losses(block(inner), *batch(), lambda loss: loss), by_fsdp_and_tp(mesh, inner)
    same = torch.allclose(torch.tensor(found), torch.tensor(expected), rtol=1e-4)
    faults = [] if same else [f"losses {found}, not {expected}"]
    if _norm.last_rung != "cpp" or _gate.last_rung != "cpp":
        faults.append(f"served by {_norm.last_rung} and {_gate.last_rung}")
    return faults


def judge_grid_optimizer(count: int, inner: int) -> list[str]:
    """Our optimizer on that mesh, by kernels, and by the norm of all gradients."""
    mesh = init_device_mesh("cpu", (2, count // 2), mesh_dim_names=("data", "tensor"))
    make: Make = lambda params: opwright.optim.AdamW(params, lr=0.05, max_grad_norm=0.1)  # noqa: E731
    expected = losses(block(inner), *batch(), lambda loss: loss, make)
    refused = mock.Mock(side_effect=AssertionError("the definition serves"))
    with mock.patch.object(buckets, "run_composed", refused), mock.patch.object(plan, "run_composed", refused):
        found = by_fsdp_and_tp(mesh, inner, make)
    same = torch.allclose(torch.tensor(found), torch.tensor(expected), rtol=1e-4)
    return [] if same else [f"losses {found}, not {expected}"]


def judge_parameters(count: int, inner: int) -> list[str]:
    """Operators on the parameters, which lie as `_StridedShard`: results, gradients of both arguments."""
    mesh = init_device_mesh("cpu", (2, count // 2), mesh_dim_names=("data", "tensor"))
    model = _in_parts(block(inner), mesh["tensor"])
    for layer in (*model.children(), model):
        fully_shard(layer, mesh=mesh["data"])
    faults = []
    for parameter, like in zip(model.parameters(), block(inner).parameters(), strict=True):
        if like.ndim < 2:
            continue
        torch.manual_seed(0)
        whole = torch.randn(WIDTH if like.shape[1] == WIDTH else inner)
        weight = distribute_tensor(whole, parameter.device_mesh, [Replicate(), Replicate()]).requires_grad_()
        made, right = _norm(parameter, weight), functions.spread_norm(like, whole.requires_grad_())
        ours = [made, *torch.autograd.grad(made.square().sum(), (parameter, weight))]
        theirs = [right, *torch.autograd.grad(right.square().sum(), (like, whole))]
        what = f"{parameter.placements} of {[*like.shape]}"
        for name, one, exact in zip(("result", "gradient", "gradient of w"), ours, theirs, strict=True):
            if not torch.allclose(one.full_tensor(), exact, rtol=1e-4, atol=1e-5):
                faults.append(f"{what}: another {name}")
        if isinstance(parameter.placements[0], _StridedShard) and _norm.last_rung != "cpp":
            faults.append(f"{what}: served by {_norm.last_rung}")
    return faults


def judge(count: int) -> list[str]:
    """Losses equal those of one process."""
    mesh = init_device_mesh("cpu", (count,))
    expected = losses(block(), *batch(), lambda loss: loss)
    faults = []
    for way in (by_ddp, by_fsdp, by_tp):
        found = way(mesh)
        if not torch.allclose(torch.tensor(found), torch.tensor(expected), rtol=1e-4):
            faults.append(f"{way.__name__}: losses {found}, not {expected}")
        if _norm.last_rung != "cpp" or _gate.last_rung != "cpp":
            faults.append(f"{way.__name__}: served by {_norm.last_rung} and {_gate.last_rung}")
    return faults
