"""What training needs besides calls: optimizers, checkpoints, modules, compilers and pipelines, on two processes."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
from torch.utils.checkpoint import checkpoint

import opwright
from tests.sharding import functions
from tests.sharding.on_block import batch, block, part

Faults = list[str]


def sharded(mesh: Any) -> nn.Module:
    """The block under FSDP2."""
    model = block()
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def trained(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> list[torch.Tensor]:
    """The whole parameters after some steps."""
    x, y = map(part, batch())
    for _ in range(steps):
        (model(x) - y).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return [one.full_tensor().detach().clone() for one in model.parameters()]


def judge_optimizer(mesh: Any) -> Faults:
    """AdamW of ours trains FSDP2 as torch's does."""
    options: dict[str, Any] = {"lr": 0.05, "weight_decay": 0.1}
    model, other = sharded(mesh), sharded(mesh)
    mine = trained(model, opwright.optim.AdamW(model.parameters(), **options), 5)
    theirs = trained(other, torch.optim.AdamW(other.parameters(), **options), 5)
    faults = [
        f"parameter {place} differs by {(one - like).abs().max()}"
        for place, (one, like) in enumerate(zip(mine, theirs, strict=True))
        if not torch.allclose(one, like, rtol=1e-4, atol=1e-6)
    ]
    kinds = {type(one).__name__ for one in model.parameters()}
    return [*faults, *([f"parameters are {kinds}"] if kinds != {"DTensor"} else [])]


def judge_saving(mesh: Any) -> Faults:
    """Training goes on bit for bit from a distributed checkpoint of model and optimizer."""

    def fresh() -> tuple[nn.Module, torch.optim.Optimizer]:
        model = sharded(mesh)
        return model, opwright.optim.AdamW(model.parameters(), lr=0.05)

    folder = [tempfile.mkdtemp() if dist.get_rank() == 0 else ""]
    dist.broadcast_object_list(folder)
    model, optimizer = fresh()
    trained(model, optimizer, 2)
    states = get_state_dict(model, optimizer)
    dcp.save({"model": states[0], "optimizer": states[1]}, checkpoint_id=folder[0])
    expected = trained(model, optimizer, 2)
    again, other = fresh()
    given = dict(zip(("model", "optimizer"), get_state_dict(again, other), strict=True))
    dcp.load(given, checkpoint_id=folder[0])
    set_state_dict(again, other, model_state_dict=given["model"], optim_state_dict=given["optimizer"])
    found = trained(again, other, 2)
    same = all(torch.equal(one, like) for one, like in zip(found, expected, strict=True))
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(folder[0])
    return [] if same else ["training from a checkpoint gives other parameters"]


def judge_checkpointing(mesh: Any) -> Faults:
    """Activations that are computed again in the backward pass give the same gradients."""
    operator = opwright.operator(functions.spread_norm)
    torch.manual_seed(0)
    x, w = torch.randn(6, 40), torch.randn(40)
    faults = []
    for placements in (
        (Shard(0), Replicate()),
        (Shard(1), Shard(0)),
    ):  # whole rows; rows in parts, with saved statistics
        faults += _checkpointed(
            operator, [distribute_tensor(x, mesh, placements[:1]), distribute_tensor(w, mesh, placements[1:])]
        )
    return faults


def _checkpointed(operator: Any, given: Sequence[Any]) -> Faults:
    both = []
    for run in (lambda *args: operator(*args), lambda *args: checkpoint(operator, *args, use_reentrant=False)):
        leaves = [one.detach().requires_grad_() for one in given]
        made = run(*leaves)
        both.append([one.full_tensor() for one in torch.autograd.grad(made.square().sum(), leaves)])
    return [] if all(map(torch.equal, *both)) else ["checkpointing gives other gradients"]


class Gated(nn.Module):
    """A module whose forward runs as one operator."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = (nn.Linear(8, 8, bias=False) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Gate."""
        return torch.sigmoid(self.left(x)) * self.right(x)


def _placed_parameters(module: nn.Module, mesh: Any) -> nn.Module:
    for linear in module.modules():
        if isinstance(linear, nn.Linear):
            linear.weight = nn.Parameter(distribute_tensor(linear.weight.detach(), mesh, [Shard(0)]))
    return module


def judge_callables(mesh: Any) -> Faults:
    """Served modules and compiled functions take DTensors, and give what they give on whole tensors."""
    torch.manual_seed(0)
    module, x = Gated(), torch.randn(6, 8)
    operator = opwright.operator(functions.spread_norm)
    w = torch.randn(8)
    cases: list[tuple[str, Callable[..., Any], Sequence[Any], torch.Tensor]] = []
    expected = module(x).detach()
    spread = _placed_parameters(Gated(), mesh)
    spread.load_state_dict(
        {name: distribute_tensor(one, mesh, [Shard(0)]) for name, one in module.state_dict().items()}
    )
    whole = distribute_tensor(x, mesh, [Replicate()])
    rows = distribute_tensor(x, mesh, [Shard(0)])
    weight = distribute_tensor(w, mesh, [Replicate()])
    cases.append(("module", opwright.module(spread), (whole,), expected))
    compiled = torch.compile(lambda *args: operator(*args) * 2, backend="aot_eager", fullgraph=True)
    cases.append(("compile", compiled, (rows, weight), functions.spread_norm(x, w) * 2))
    grad = opwright.func.grad(lambda a, b: functions.spread_norm(a, b).square().sum())
    cases.append(
        ("grad", grad, (rows, weight), torch.func.grad(lambda a: functions.spread_norm(a, w).square().sum())(x))
    )
    faults = []
    for name, call, args, right in cases:
        for _ in range(2):
            made = call(*args)
            if not isinstance(made, DTensor) or not torch.allclose(made.full_tensor(), right, rtol=1e-4, atol=1e-5):
                faults.append(f"{name}: another result, of type {type(made).__name__}")
    return faults


def judge_transforms(mesh: Any) -> Faults:
    """Transforms of `opwright.func` on DTensors, of uneven parts, against those of torch on whole tensors."""
    norm = functions.spread_norm
    torch.manual_seed(0)
    x, w, v = torch.randn(5, 8), torch.randn(8), torch.randn(5, 8)
    spread = [distribute_tensor(x, mesh, [Shard(0)]), distribute_tensor(w, mesh, [Replicate()])]
    spread.append(distribute_tensor(v, mesh, [Shard(0)]))

    def loss(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return norm(a, b).square().sum()

    calls: dict[str, Callable[..., Any]] = {
        "grad": lambda func, a, b, c: func.grad(loss, argnums=1)(a, b),
        "vjp": lambda func, a, b, c: func.vjp(norm, a, b)[1](c)[0],
        "jvp": lambda func, a, b, c: func.jvp(norm, (a, b), (c, torch.zeros_like(b)))[1],
        "vmap": lambda func, a, b, c: func.vmap(norm, (0, None))(a, b),
        "jacrev": lambda func, a, b, c: func.jacrev(loss)(a, b),
    }
    faults = []
    for name, call in calls.items():
        found, right = call(opwright.func, *spread), call(torch.func, x, w, v)
        if not isinstance(found, DTensor) or not torch.allclose(found.full_tensor(), right, rtol=1e-3, atol=1e-4):
            faults.append(f"{name}: another result, of type {type(found).__name__}")
    return faults


def judge_parallel(mesh: Any) -> Faults:
    """`opwright.module` of a module with products in parts: these have hooks, so it runs as written, with a warning."""
    os.environ["OPWRIGHT_STRICT"] = "0"
    torch.manual_seed(0)
    module, x = Gated(), torch.randn(6, 8)
    whole = module(x)
    whole.square().sum().backward()
    spread = Gated()
    spread.load_state_dict(module.state_dict())
    columns = ColwiseParallel(use_local_output=False)
    served = opwright.module(parallelize_module(spread, mesh, {"left": columns, "right": columns}))
    faults = []
    for turn in range(2):
        spread.zero_grad()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", opwright.FallbackWarning)
            made = served(distribute_tensor(x, mesh, [Replicate()]))
        if ["has hooks" in str(each.message) for each in told] != [True] * (turn == 0):
            faults.append(f"call {turn} warned of {[str(each.message) for each in told]}")
        made.square().sum().backward()
        if not torch.allclose(made.full_tensor(), whole, rtol=1e-4, atol=1e-5):
            faults.append("another result")
        for (name, one), like in zip(spread.named_parameters(), module.parameters(), strict=True):
            assert isinstance(one.grad, DTensor)
            if not torch.allclose(one.grad.full_tensor(), like.grad, rtol=1e-4, atol=1e-5):
                faults.append(f"another gradient of {name}")
    return faults


def judge_pipeline(mesh: Any) -> Faults:
    """Two stages of a pipeline, four parts of a batch: the losses and gradients of one process."""
    del mesh
    rank, count = dist.get_rank(), dist.get_world_size()
    model = block()
    x, y = batch()
    loss_of = nn.MSELoss()
    whole = block()
    expected = [loss_of(whole(one), like) for one, like in zip(x.chunk(4), y.chunk(4), strict=True)]
    torch.stack(expected).mean().backward()
    stage = PipelineStage(model[rank], rank, count, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, n_microbatches=4, loss_fn=loss_of)
    found: list[torch.Tensor] = []
    if rank == 0:
        schedule.step(x)
    else:
        schedule.step(target=y, losses=found)
    faults = []
    if rank == count - 1 and not torch.allclose(torch.stack(found), torch.stack(expected).detach(), rtol=1e-5):
        faults.append(f"losses {found}, not {expected}")
    for one, like in zip(model[rank].parameters(), whole[rank].parameters(), strict=True):
        assert one.grad is not None
        assert like.grad is not None
        if not torch.allclose(one.grad, like.grad, rtol=1e-4, atol=1e-6):
            faults.append(f"stage {rank}: another gradient")
    return faults


def judge(count: int, which: str) -> Faults:
    """One of them."""
    mesh = init_device_mesh("cpu", (count,))
    judges = (
        judge_optimizer,
        judge_saving,
        judge_checkpointing,
        judge_callables,
        judge_transforms,
        judge_parallel,
        judge_pipeline,
    )
    return {one.__name__.removeprefix("judge_"): one for one in judges}[which](mesh)
