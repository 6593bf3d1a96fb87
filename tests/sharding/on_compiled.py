"""Calls with DTensors under torch.compile, on two processes: our operators are in the graphs, and results are right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from functorch.compile import make_boxed_func
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.experimental import implicit_replication

import opwright
from tests.sharding import functions
from tests.sharding.judged import placed

_R, _P = Replicate(), Partial()
Faults = list[str]
# Functions, the shapes of their arguments, placements of these, and of the result.
CASES: tuple[tuple[str, list[tuple[int, ...]], list[Any], Any], ...] = (
    ("spread_norm", [(5, 6), (6,)], [Shard(0), _R], Shard(0)),  # uneven rows
    ("spread_norm", [(1, 6), (6,)], [Shard(0), _R], None),  # a process without rows
    ("spread_norm", [(4, 6), (6,)], [Shard(1), Shard(0)], None),  # rows in parts, which are gathered
    ("spread_mean", [(5, 6), (5, 6)], [Shard(0), Shard(0)], _P),  # factors that differ
    ("spread_gate", [(4, 6), (4, 6)], [_R, _P], _P),
    ("spread_linear", [(2, 4, 6), (5, 6)], [Shard(2), Shard(1)], None),
    ("spread_chunks", [(4, 6), (4, 2)], [Shard(1), Shard(1)], None),  # refused, so gathered
    ("spread_unknown", [(4, 4)], [Shard(0)], _R),  # no rules
)


class Graphs:
    """A backend that remembers the operations of the graphs."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def backend(self) -> Callable[..., Any]:
        """It, with autograd before it."""

        def compiler(graph: torch.fx.GraphModule, _: Sequence[Any]) -> Any:
            self.names += [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]
            return make_boxed_func(graph.forward)

        return aot_autograd(fw_compiler=compiler)


def judge_cases(mesh: Any) -> Faults:
    """Results and gradients of compiled calls; graphs have the operator, and no arithmetic of its function."""
    faults = []
    for name, shapes, placements, made in CASES:
        torch._dynamo.reset()  # so that sizes are numbers
        function = getattr(functions, name)
        operator = opwright.operator(function)
        torch.manual_seed(0)
        wholes = [torch.randn(shape, requires_grad=True) for shape in shapes]
        operator(*wholes)  # what it returns is known from now on
        graphs = Graphs()
        compiled = torch.compile(lambda *args, operator=operator: operator(*args) * 2, backend=graphs.backend(), fullgraph=True)
        given = [placed(one.detach(), mesh, [to]).requires_grad_() for one, to in zip(wholes, placements, strict=True)]
        found, right = compiled(*given), function(*wholes) * 2
        where = f"{name} on {placements}"
        if not torch.allclose(found.full_tensor(), right, rtol=1e-4, atol=1e-5):
            faults.append(f"{where}: another result")
        if made is not None and found.placements != (made,):
            faults.append(f"{where}: {found.placements}")
        gradients = torch.autograd.grad(found.full_tensor().square().sum(), given)
        exact = torch.autograd.grad(right.square().sum(), wholes)
        for one, like in zip(gradients, exact, strict=True):
            if not torch.allclose(one.full_tensor(), like, rtol=1e-3, atol=1e-4):
                faults.append(f"{where}: another gradient, by {(one.full_tensor() - like).abs().max()}")
        ours = [one for one in graphs.names if one.startswith("opwright.")]
        whole = mesh.get_local_rank() == 0
        if whole and len(ours) != 2:
            faults.append(f"{where}: {graphs.names}")
    return faults


def judge_sizes(mesh: Any) -> Faults:
    """Sizes that change, so that the compiler makes them symbols."""
    operator = opwright.operator(functions.spread_mean)
    operator(torch.ones(4, 6), torch.ones(4, 6))
    compiled = torch.compile(lambda *args: operator(*args) * 2, backend="aot_eager", fullgraph=True)
    faults = []
    for rows in (4, 5, 7, 1):
        wholes = [torch.randn(rows, 6, generator=torch.Generator().manual_seed(place)) for place in range(2)]
        found = compiled(*[distribute_tensor(one, mesh, [Shard(0)]) for one in wholes]).full_tensor()
        if not torch.allclose(found, functions.spread_mean(*wholes) * 2, rtol=1e-4, atol=1e-5):
            faults.append(f"{rows} rows: another result")
    return faults


def judge_outside(mesh: Any) -> Faults:
    """A value that the function reads outside is that of each call."""
    operator = opwright.operator(functions.spread_by_outside)
    x = torch.ones(4, 4)
    operator(x)
    compiled = torch.compile(lambda one: operator(one), backend="aot_eager", fullgraph=True)
    faults = []
    for factor in (2.0, 3.0):
        functions.OUTSIDE = factor
        found = compiled(distribute_tensor(x, mesh, [Shard(0)])).full_tensor()
        faults += [] if torch.equal(found, x * factor) else [f"times {factor} gives {found[0, 0]}"]
    functions.OUTSIDE = 1.0
    return faults


def judge_plain(mesh: Any) -> Faults:
    """Plain tensors are taken where PyTorch is told to take them, eagerly and compiled."""
    operator = opwright.operator(functions.spread_norm)
    torch.manual_seed(0)
    x, w = torch.randn(5, 6), torch.randn(6, requires_grad=True)
    right = functions.spread_norm(x, w)
    (exact,) = torch.autograd.grad(right.square().sum(), w)
    rows = distribute_tensor(x, mesh, [Shard(0)])
    faults = []
    for call in (operator, torch.compile(lambda *args: operator(*args), backend="aot_eager")):
        with implicit_replication():
            found = call(rows, w)
        if not isinstance(found, DTensor) or not torch.allclose(found.full_tensor(), right, rtol=1e-4, atol=1e-5):
            faults.append("another result beside a plain tensor")
        (gradient,) = torch.autograd.grad(found.full_tensor().square().sum(), w)
        gradient = gradient.full_tensor() if isinstance(gradient, DTensor) else gradient
        if not torch.allclose(gradient, exact, rtol=1e-4, atol=1e-5):
            faults.append(f"another gradient of a plain tensor: {gradient}, not {exact}")
    return faults


def judge(count: int, which: str) -> Faults:
    """One of them."""
    mesh = init_device_mesh("cpu", (count,))
    judges = (judge_cases, judge_sizes, judge_outside, judge_plain)
    return {one.__name__.removeprefix("judge_"): one for one in judges}[which](mesh)
