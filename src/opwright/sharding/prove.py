"""Prove a rule in one process: run the function on simulated parts in double precision, and compare with the whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product as combinations
from typing import Any

import torch
from torch.distributed.tensor import Partial, Shard
from torch.utils._pytree import tree_leaves

from opwright.ir.expressions.integer import evaluate, holds, symbols_of
from opwright.ir.relations.relations import relations
from opwright.operators.structure import Structure
from opwright.sharding.derive import Derived, as_input
from opwright.sharding.parts import neutral, part_of, put_together
from opwright.sharding.rule import Rule, Told
from opwright.sharding.rules.sizes import Sizes
from opwright.tracing.interface.specs import ArgumentSpec, TensorSpec

_COUNTS = ((2, 4), (2, 3), (3, 4))  # processes, and the size of the axis: even, uneven, one process without elements
_SIZES = (3, 5, 4, 7, 6, 2, 8, 9, 16)
_MOST_TRIES = 2000
_CLOSE = 1e-8
_CLOSE_CONVERTED = 1e-4  # where the function converts to float32, also of double precision

Function = Callable[..., Any]


@dataclass(frozen=True)
class Subject:
    """What rules are proven of.

    Attributes:
        function: The reference, of arguments in order.
        specs: All its arguments.
        structure: What was read off it.
    """

    function: Function
    specs: Sequence[ArgumentSpec]
    structure: Structure

    @property
    def tensors(self) -> list[TensorSpec]:
        """The arguments that are tensors."""
        return [spec for spec in self.specs if isinstance(spec, TensorSpec)]

    @cached_property
    def closeness(self) -> float:
        """How far results of parts may be from those of the whole, relative to the largest."""
        named = (tree_leaves((node.args, node.kwargs)) for node in self.structure.graph.fx.nodes)
        converts = any(isinstance(one, torch.dtype) and one.is_floating_point for leaves in named for one in leaves)
        return _CLOSE_CONVERTED if converts else _CLOSE


def proven(subject: Subject, derived: Derived) -> Derived:
    """The rules that hold on samples; the others are told of."""
    kept: list[Rule] = []
    refused: list[Told] = []
    with torch.no_grad():
        for rule in derived.rules:
            fault = disproof(subject, rule)
            kept.append(rule) if fault is None else refused.append(Told(rule.name, f"not proven: {fault}"))
    return replace(derived, rules=tuple(kept), told=(*derived.told, *refused))


def disproof(subject: Subject, rule: Rule) -> str | None:
    """Why a rule is not proven; None if it holds on all samples."""
    if not any(isinstance(placement, Shard | Partial) for placement in rule.inputs):
        return None
    for count, size in _COUNTS[:1] if rule.even else _COUNTS:
        shapes = small_shapes(subject, rule, size)
        if shapes is None:
            return "no small sizes are known that the function takes"
        for draw in range(2):
            try:
                fault = _fault(subject, rule, shapes, count, draw)
            except Exception as error:  # of the user's function, for which shapes of parts may be wrong
                return f"{type(error).__name__}: {error}".split("\n")[0]
            if fault is not None:
                return fault
    return None


def small_shapes(subject: Subject, rule: Rule, size: int) -> list[tuple[int, ...]] | None:
    """Small shapes of the tensors, where the axis of the rule has a size; None if none are known that are taken."""
    program = subject.structure.program
    sizes, solved = Sizes.of(program), relations(program.guards)
    spelled = [sizes.shape(as_input(program, spec).shape) for spec in subject.tensors]
    places = [(p, one.dim) for p, one in enumerate(rule.inputs) if isinstance(one, Shard)]
    axis = next(iter(symbols_of(spelled[places[0][0]][places[0][1]]))) if places else None
    free = sorted({name for shape in spelled for one in shape for name in symbols_of(one)} - {axis})
    hard = [name for name in free if any(name in symbols_of(c.left) | symbols_of(c.right) for c in solved.beyond_least)]
    usual = {name: _SIZES[place % 5] for place, name in enumerate(free)}
    for tried, chosen in enumerate(combinations(_SIZES, repeat=len(hard))):
        if tried > _MOST_TRIES:
            break
        values = usual | dict(zip(hard, chosen, strict=True)) | ({axis: size} if axis else {})
        if any(not symbols_of(c.left) | symbols_of(c.right) <= set(values) for c in solved.conditions):
            return None
        if all(holds(condition, values) for condition in solved.conditions):
            return [tuple(evaluate(one, values) for one in shape) for shape in spelled]
    return None


def _fault(subject: Subject, rule: Rule, shapes: Sequence[tuple[int, ...]], count: int, draw: int) -> str | None:
    generator = torch.Generator().manual_seed(count + 7 * draw)
    given = [drawn(spec, shape, generator, draw) for spec, shape in zip(subject.tensors, shapes, strict=True)]
    parts = [_cut(tensor, placement, count, generator) for tensor, placement in zip(given, rule.inputs, strict=True)]
    return fault_on(subject, rule, given, parts)


def fault_on(
    subject: Subject, rule: Rule, given: Sequence[torch.Tensor], parts: Sequence[Sequence[torch.Tensor]]
) -> str | None:
    """What is wrong if processes compute by a rule; None if nothing is.

    Args:
        subject: What is computed.
        rule: The rule.
        given: The whole arguments, in double precision.
        parts: For each of them, what each process has of it.
    """
    count, whole = len(parts[0]), _run(subject, given)
    found = _found(subject, rule, parts, given, whole)
    for position, (expected, placement) in enumerate(zip(whole, rule.outputs, strict=True)):
        pieces = [part[position] for part in found]
        shapes_fit = all(_fits(piece, expected, placement, count, i) for i, piece in enumerate(pieces))
        if not shapes_fit:
            return f"result {position} of a part has another shape than a part of the result"
        for together in [put_together(pieces, placement), *([] if _is_cut(placement) else pieces)]:
            if not _is_close(together, expected, subject.closeness):
                return f"result {position} differs from that of the whole computation"
    return None


def _is_cut(placement: Any) -> bool:
    return isinstance(placement, Shard | Partial)


def _fits(piece: torch.Tensor, expected: torch.Tensor, placement: Any, count: int, index: int) -> bool:
    like = part_of(expected, placement.dim, count, index) if isinstance(placement, Shard) else expected
    return piece.shape == like.shape


def _is_close(found: torch.Tensor, expected: torch.Tensor, close: float) -> bool:
    if not expected.is_floating_point() and not expected.is_complex():
        return torch.equal(found.to(expected.dtype), expected)
    scale = expected.abs().nan_to_num(0, 0, 0).max().item() if expected.numel() else 0
    return torch.allclose(found.to(expected.dtype), expected, rtol=close, atol=close * max(scale, 1), equal_nan=True)


def _found(
    subject: Subject,
    rule: Rule,
    parts: Sequence[Sequence[torch.Tensor]],
    given: Sequence[torch.Tensor],
    whole: Sequence[torch.Tensor],
) -> list[list[torch.Tensor]]:
    """What each process has at the end.

    Args:
        subject: What is run.
        rule: How.
        parts: For each argument, the parts of all processes.
        given: The whole arguments.
        whole: The whole results.
    """
    count = len(parts[0])
    own = [[part[index] for part in parts] for index in range(count)]
    shares = [_share(rule, one, given) for one in own]
    computed = _computed_split if rule.split else _computed
    made = computed(subject, rule, own, shares)
    return [
        [one * share**power if power else one for one, power in zip(results, rule.powers, strict=True)]
        if share else _added_by_none(rule, whole, count, index)
        for index, (results, share) in enumerate(zip(made, shares, strict=True))
    ]  # fmt: skip


def _share(rule: Rule, own: Sequence[torch.Tensor], given: Sequence[torch.Tensor]) -> float:
    """The share of the axis that a process has."""
    for position, one in enumerate(rule.inputs):
        if isinstance(one, Shard):
            return own[position].shape[one.dim] / given[position].shape[one.dim]
    return 1.0


def _computed(
    subject: Subject, rule: Rule, own: Sequence[Sequence[torch.Tensor]], shares: Sequence[float]
) -> list[list[torch.Tensor]]:
    del rule
    return [_run(subject, one) if share else [] for one, share in zip(own, shares, strict=True)]


def _computed_split(
    subject: Subject, rule: Rule, own: Sequence[Sequence[torch.Tensor]], shares: Sequence[float]
) -> list[list[torch.Tensor]]:
    """The same by stages; what they compute is put together after each."""
    del subject
    assert rule.split is not None
    having = [(one, torch.tensor(share, dtype=torch.float64)) for one, share in zip(own, shares, strict=True) if share]
    reduced: list[torch.Tensor] = []
    for before in rule.split.before:
        made = [before.stage(*one, *reduced, share, exactly=True) for one, share in having]
        reduced += [
            put_together([values[place] for values in made], Partial(function))
            for place, function in enumerate(before.functions)
        ]
    last, places = rule.split.last, rule.split.places
    found = iter(
        [[values[place] for place in places] for values in (last(*o, *reduced, s, exactly=True) for o, s in having)]
    )
    return [next(found) if share else [] for share in shares]


def _added_by_none(rule: Rule, whole: Sequence[torch.Tensor], count: int, index: int) -> list[torch.Tensor]:
    """What a process without elements has."""
    shapes = [
        part_of(one, placement.dim, count, index).shape if isinstance(placement, Shard) else one.shape
        for one, placement in zip(whole, rule.outputs, strict=True)
    ]
    return [
        neutral(tuple(shape), one.dtype, placement, one.device)
        if _is_cut(placement) else one
        for shape, one, placement in zip(shapes, whole, rule.outputs, strict=True)
    ]  # fmt: skip


def _run(subject: Subject, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    remaining = iter(tensors)
    args = [next(remaining).clone() if isinstance(s, TensorSpec) else s.value for s in subject.specs]
    return [leaf for leaf in tree_leaves(subject.function(*args)) if isinstance(leaf, torch.Tensor)]


def drawn(spec: TensorSpec, shape: tuple[int, ...], generator: torch.Generator, draw: int) -> torch.Tensor:
    """Numbers in double precision: normal ones, then some between 0 and 1, for roots and logarithms."""
    if spec.dtype.is_complex:
        return torch.randn(shape, generator=generator, dtype=torch.complex128)
    if spec.dtype.is_floating_point:
        normal = torch.randn(shape, generator=generator, dtype=torch.float64)
        return normal.abs().clamp(0.05, 0.95) if draw else normal
    return torch.randint(0, 2, shape, generator=generator).to(spec.dtype)


def _cut(tensor: torch.Tensor, placement: Any, count: int, generator: torch.Generator) -> list[torch.Tensor]:
    if isinstance(placement, Shard):
        return [part_of(tensor, placement.dim, count, index) for index in range(count)]
    if not isinstance(placement, Partial):
        return [tensor] * count
    addends = [torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype) for _ in range(count - 1)]
    return [*addends, tensor - sum(addends, torch.zeros_like(tensor))]
