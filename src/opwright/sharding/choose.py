"""Choose a rule for each dimension of a mesh: the one that moves the fewest bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor.placement_types import Placement

from opwright.sharding.parts import part_size
from opwright.sharding.rule import REPLICATE, Rule

_NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Given:
    """A tensor that is to be placed: its whole sizes, its bytes, and its placement in each dimension of the mesh."""

    sizes: tuple[int, ...]
    bytes: int
    placements: tuple[Placement, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """A rule for each dimension of a mesh."""

    rules: tuple[Rule, ...]

    def inputs(self, position: int) -> tuple[Placement, ...]:
        """The placements of an argument."""
        return tuple(rule.inputs[position] for rule in self.rules)

    def outputs(self, position: int) -> tuple[Placement, ...]:
        """The placements of a result."""
        return tuple(rule.outputs[position] for rule in self.rules)


def choose(
    rules: Sequence[Rule],
    given: Sequence[Given],
    made: Sequence[int],
    mesh: Sequence[int],
    between: Sequence[int] | None = None,
) -> Choice | None:
    """The rules of least cost, one for each dimension of a mesh, outermost first; the same in every process.

    Args:
        rules: Those that are proven.
        given: The tensors among the arguments.
        made: The bytes of each result.
        mesh: The sizes of the mesh.
        between: For each rule, the bytes that are reduced between its stages; None if none has stages.

    Returns:
        The choice; None if there is no rule.
    """
    sizes = {(p, d): {size} for p, one in enumerate(given) for d, size in enumerate(one.sizes)}
    chosen: list[Rule] = []
    reduced = {id(rule): size for rule, size in zip(rules, between or [0] * len(rules), strict=True)}
    for level, count in enumerate(mesh):
        allowed = [rule for rule in rules if _is_allowed(rule, chosen, sizes, count)]
        if not allowed:
            return None
        best = min(allowed, key=lambda rule: _cost(rule, given, made, level, count, reduced[id(rule)]))
        for position, placement in enumerate(best.inputs):
            if isinstance(placement, Shard):
                whole = sizes[position, placement.dim]
                sizes[position, placement.dim] = {part_size(s, count, i) for s in whole for i in range(count)}
        chosen.append(best)
    return Choice(tuple(chosen))


def _is_allowed(rule: Rule, chosen: Sequence[Rule], sizes: dict[tuple[int, int], set[int]], count: int) -> bool:
    """Whether a rule can be used at a level, for all the sizes that processes may have there."""
    if rule.split is not None and any(one.split is not None for one in chosen):
        return False
    for position, placement in enumerate(rule.inputs):
        if not isinstance(placement, Shard):
            continue
        here = sizes[position, placement.dim]
        if rule.even and any(size % count for size in here):
            return False
        is_empty = any(part_size(size, count, count - 1) == 0 for size in here)
        if is_empty and any(isinstance(made, Replicate) for made in rule.outputs):
            return False
    for place, made in enumerate(rule.outputs):
        functions = {o.reduce_op for o in (*(r.outputs[place] for r in chosen), made) if isinstance(o, Partial)}
        if len(functions) > 1:
            return False
    return True


def _cost(
    rule: Rule, given: Sequence[Given], made: Sequence[int], level: int, count: int, reduced: int
) -> tuple[float, int]:
    """Bytes that are moved, and how many collectives or changes of placement there are."""
    moves = [(one.placements[level], to, one.bytes) for one, to in zip(given, rule.inputs, strict=True)]
    moved = sum(bytes_moved(now, to, size, count) for now, to, size in moves)
    later = sum(
        bytes_moved(o, REPLICATE, size, count) for o, size in zip(rule.outputs, made, strict=True) if o.is_partial()
    )
    within = 2 * reduced * (count - 1) / count
    return moved + later + within, sum(now != to for now, to, _ in moves) + (
        rule.split.collectives if rule.split else 0
    )


def bytes_moved(now: Placement, to: Placement, size: int, count: int) -> float:
    """What a process sends, at the least, when a tensor of so many bytes is placed otherwise.

    Rings: a gather and a reduction that leaves each a part send (n - 1)/n of the tensor, an all-reduce both.
    """
    share = size * (count - 1) / count
    if now == to:
        return 0
    if to.is_partial():
        return _NEVER
    if now.is_replicate():
        return 0
    if now.is_partial():
        return share if to.is_shard() else 2 * share
    return share if to.is_replicate() else share / count


def collective(now: Placement, to: Placement) -> str:
    """What a change of placement takes: "all-gather", say; nothing where every process has what it needs."""
    if now == to or now.is_replicate():
        return ""
    if now.is_partial():
        return "reduce-scatter" if to.is_shard() else "all-reduce"
    return "all-gather" if to.is_replicate() else "all-to-all"
