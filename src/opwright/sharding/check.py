"""check(mesh=…): judge every rule of an operator against its function, on a mesh of processes on this machine.

Each rule is called with DTensors that are placed as it asks: results and gradients are compared with those of the
function on whole tensors in double precision. The axis that a rule spreads has sizes whose parts are even, uneven and
partly empty.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, distribute_tensor
from torch.distributed.tensor.placement_types import Placement
from torch.utils._pytree import tree_leaves

from opwright.checking.tolerance import reduction_length, tolerance
from opwright.checking.verdict import Row, Verdict
from opwright.operators.base import BaseOperator
from opwright.samples import Sample, SampleFactory, required
from opwright.sharding.known import rules_for, specs_of
from opwright.sharding.local_mesh import on_local_mesh
from opwright.sharding.prove import Subject, drawn, small_shapes
from opwright.sharding.rule import Rule
from opwright.tracing.interface.place import place_of

_SECONDS = 300.0
_ADDENDS = 16  # random addends lose more digits than the function does


class Checked(Protocol):
    """The operator as users have it."""

    name: str
    samples: SampleFactory | None
    reference: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""

    def flattened(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[BaseOperator, Sequence[Any]]:
        """The operator of flat arguments that serves a call, and these arguments."""


def check_on_mesh(operator: Checked, count: int, dtypes: Sequence[torch.dtype], seconds: float = _SECONDS) -> Verdict:
    """Judge the rules of an operator.

    Args:
        operator: It has samples, and other processes can import it.
        count: How many processes the mesh has; at least two.
        dtypes: Of the samples.
        seconds: When the processes are ended; a process that is not done by then is a failure.

    Returns:
        A row for each rule, sample and size; "skipped" where other processes cannot import the operator.

    Raises:
        SamplesMissing: If it has none.
        ValueError: If there are fewer than two processes.
    """
    if count < 2:
        raise ValueError(f"a mesh of {count} processes spreads nothing; give mesh=2 or more")
    samples = [sample for dtype in dtypes for sample in _smallest(operator, dtype)]
    if not _can_be_imported(operator):
        why = "other processes cannot import it; define it in a module, at its top"
        return Verdict(operator.name, (Row("operator", "sharding", "", "skipped", why),))
    told = on_local_mesh(judge_rules, (operator, samples), count, seconds=seconds)
    rows = [Row(*json.loads(line)) for line in told if line.startswith("[")]
    faults = [Row("operator", "sharding", "", "failed", line) for line in told if not line.startswith("[")]
    return Verdict(operator.name, (*rows, *faults))


def _can_be_imported(operator: Checked) -> bool:
    """Whether its module has it under its name; a script is no module, since to import it runs it."""
    reference = operator.reference
    found: Any = None if reference.__module__ == "__main__" else sys.modules.get(reference.__module__)
    for name in reference.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is operator


def _smallest(operator: Checked, dtype: torch.dtype) -> list[Sample]:
    """The smallest sample: what is taken of it is its structure and its constants."""
    factory = required(operator.samples, operator.name, "its rules cannot be judged", place_of(operator.reference))
    samples = sorted(factory("cpu", dtype), key=lambda sample: sum(one.numel() for one in sample.tensors()))
    return samples[:1]


def judge_rules(count: int, operator: Checked, samples: Sequence[Sample]) -> list[str]:
    """Judge every rule on samples, in one of the processes; the first tells all rows, the others failures alone."""
    mesh = init_device_mesh("cpu", (count,))
    rows = []
    for sample in samples:
        flat, leaves = operator.flattened(sample.args, dict(sample.kwargs))
        specs = specs_of(flat, leaves, [tuple(tensor.shape) for tensor in sample.tensors()])
        rules = rules_for(flat, specs).rules
        subject = Subject(flat.flat_reference, specs, flat.structure(specs))
        for rule in rules:
            for size in (2 * count,) if rule.even else (2 * count, 2 * count - 1, count + 1):
                rows.append(_row(operator, sample, subject, rule, size, mesh))
                if not rule.shards:
                    break  # it has no axis
    return [json.dumps(row) for row in rows if mesh.get_local_rank() == 0 or row[3] == "failed"]


def _row(operator: Checked, sample: Sample, subject: Subject, rule: Rule, size: int, mesh: Any) -> tuple[str, ...]:
    where = f"{rule.name}, {rule}" + (f", size {size} of the axis" if rule.shards else "")
    shapes = small_shapes(subject, rule, size)
    if shapes is None:
        return ("operator", "sharding", where, "skipped", "no small sizes are known that the function takes")
    generator = torch.Generator().manual_seed(size)
    given = zip(subject.tensors, shapes, strict=True)
    wholes = [drawn(spec, shape, generator, draw=1).to(spec.dtype) for spec, shape in given]
    fault = _fault(operator, sample, wholes, rule.inputs, mesh)
    return ("operator", "sharding", where, "failed" if fault else "passed", fault)


def _fault(
    operator: Checked,
    sample: Sample,
    wholes: Sequence[torch.Tensor],
    placements: Sequence[Placement],
    mesh: Any,
) -> str:
    given = [placed(whole, mesh, to) for whole, to in zip(wholes, placements, strict=True)]
    exact = [whole.double() if whole.is_floating_point() else whole.clone() for whole in wholes]
    floating = [position for position, whole in enumerate(wholes) if whole.is_floating_point()]
    for position in floating:
        given[position].requires_grad_()
        exact[position].requires_grad_()
    found, expected = _run(operator, sample, given), _run(operator.reference, sample, exact)
    if fault := _differing("result", found, expected, wholes):
        return fault
    if not any(one.requires_grad for one in expected):
        return ""
    mine, exactly = (
        torch.autograd.grad(_loss(made), [side[position] for position in floating], allow_unused=True)
        for made, side in ((found, given), (expected, exact))
    )
    pairs = [(one, like) for one, like in zip(mine, exactly, strict=True) if like is not None]
    if any(one is None for one, _ in pairs):
        return "a gradient is missing"
    whole = [one.full_tensor() if isinstance(one, DTensor) else one for one, _ in pairs]
    return _differing("gradient", whole, [like for _, like in pairs], wholes)


def placed(whole: torch.Tensor, mesh: Any, placement: Placement) -> Any:
    """A DTensor of a tensor that all processes have; addends are random, and sum to it."""
    if not isinstance(placement, Partial):
        return distribute_tensor(whole, mesh, [placement])
    generator = torch.Generator().manual_seed(1)
    last = mesh.size() - 1
    addends = [torch.randn(whole.shape, generator=generator, dtype=whole.dtype) for _ in range(last)]
    rank = mesh.get_local_rank()
    local = addends[rank] if rank < last else whole - sum(addends, torch.zeros_like(whole))
    return DTensor.from_local(local, mesh, [placement], run_check=False)


def _run(function: Any, sample: Sample, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    call = sample.with_tensors(tensors)
    made = [one for one in tree_leaves(function(*call.args, **call.kwargs)) if isinstance(one, torch.Tensor)]
    return [one.full_tensor() if isinstance(one, DTensor) else one for one in made]


def _loss(made: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.stack([one.square().sum() for one in made if one.requires_grad]).sum()


def _differing(
    what: str, found: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]
) -> str:
    for position, (one, like) in enumerate(zip(found, expected, strict=True)):
        if one.shape != like.shape:
            return f"{what} {position} has shape {[*one.shape]}, not {[*like.shape]}"
        if not like.is_floating_point():
            if not torch.equal(one, like):
                return f"{what} {position} differs"
            continue
        scale = max(like.detach().abs().nan_to_num(0, 0, 0).max().item() if like.numel() else 0.0, 1.0)
        allowed = scale * _ADDENDS * tolerance(one.dtype, reduction_length([*inputs], like))
        if not torch.allclose(one.detach().double(), like.detach(), rtol=0, atol=allowed, equal_nan=True):
            return f"{what} {position} is wrong by {(one - like).abs().max().item():.2g}, allowed {allowed:.2g}"
    return ""
