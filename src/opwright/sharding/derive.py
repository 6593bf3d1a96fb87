"""Rules are read off the structure of an operator: one for each axis, and one for each set of addends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor.placement_types import Placement

from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.integer import ONE, integer, symbol, symbols_of
from opwright.ir.program import Buffer, Program, buffers_of, size_symbol
from opwright.ir.relations.relations import LEAST_SIZE, relations
from opwright.operators.structure import Structure
from opwright.sharding.rule import REPLICATE, Rule, Told
from opwright.sharding.rules.cuts import find_cuts
from opwright.sharding.rules.follow import follow
from opwright.sharding.rules.lies import SAME, At, Lies
from opwright.sharding.rules.sizes import Sizes, mentions
from opwright.sharding.split.stages import REDUCTIONS, split_of
from opwright.tracing.interface.results import Made
from opwright.tracing.interface.specs import TensorSpec

_MOST_SUBSETS = 4


@dataclass(frozen=True, slots=True)
class Derived:
    """The rules of an operator for one kind of arguments, not yet proven, and why there are no more."""

    rules: tuple[Rule, ...]
    told: tuple[Told, ...]


def derive_rules(structure: Structure, specs: Sequence[TensorSpec]) -> Derived:
    """Read off the rules.

    Args:
        structure: The traced operator.
        specs: Its arguments that are tensors.
    """
    if structure.is_random:
        return Derived((), (Told("everything", "it draws random numbers, which depend on how they are spread"),))
    if not structure.result.members or any(not isinstance(member, Made) for member in structure.result.members):
        return Derived((), (Told("everything", "it returns an argument, or something that is no tensor"),))
    reader = _Reader(structure, specs)
    found = [*reader.by_axis(), *reader.by_addends()]
    rules = tuple(one for one in found if isinstance(one, Rule))
    return Derived((reader.whole(), *rules), tuple(one for one in found if isinstance(one, Told)))


class _Reader:
    def __init__(self, structure: Structure, specs: Sequence[TensorSpec]) -> None:
        self.structure = structure
        self.program = structure.program
        self.sizes = Sizes.of(self.program)
        self.specs = specs
        self.inputs = [as_input(self.program, spec) for spec in specs]
        self.shapes = [self.sizes.shape(buffer.shape) for buffer in self.inputs]
        buffers = buffers_of(self.program)
        self.outputs = [buffers[name] for name in self.program.outputs]
        self.members = [member.position for member in structure.result.members if isinstance(member, Made)]

    def whole(self) -> Rule:
        """The rule that always holds."""
        made = (REPLICATE,) * len(self.members)
        return Rule("nothing", (REPLICATE,) * len(self.specs), made, (0,) * len(made))

    def by_axis(self) -> Iterator[Rule | Told]:
        """What spreading each axis gives."""
        axes = dict.fromkeys(name for shape in self.shapes for size in shape for name in sorted(symbols_of(size)))
        for axis in axes:
            places = [
                (p, d)
                for p, shape in enumerate(self.shapes)
                for d, size in enumerate(shape)
                if axis in symbols_of(size)
            ]
            name = ", ".join(f"{self.specs[p].name} dimension {d}" for p, d in places)
            refusal = self._refusal(axis, places)
            yield Told(name, refusal) if refusal else self._spread(axis, dict(places), name)

    def _refusal(self, axis: str, places: Sequence[tuple[int, int]]) -> str | None:
        """Why the sizes of shards would not fit."""
        for position, dimension in places:
            size, name = self.shapes[position][dimension], self.specs[position].name
            if size != symbol(axis):
                return f"dimension {dimension} of {name} has size {size}, whose parts do not correspond"
        if len({position for position, _ in places}) < len(places):
            return "two dimensions of one tensor have its size"
        for guard in relations(self.program.guards).conditions:
            if not (mentions(guard.left, axis) or mentions(guard.right, axis)):
                continue
            bound = guard.right.constant
            if guard.relation != ">=" or guard.left != symbol(axis) or bound is None or bound > LEAST_SIZE:
                return f"the function needs {guard}, which parts need not fulfil"
        return None

    def _spread(self, axis: str, places: Mapping[int, int], name: str) -> Rule | Told:
        lies = {buffer.name: Lies(at=At(places[p])) if p in places else SAME for p, buffer in enumerate(self.inputs)}
        given: list[Placement] = [Shard(places[p]) if p in places else Replicate() for p in range(len(self.specs))]
        found = self._rule(name, given, follow(self.program, lies, axis, self.sizes))
        cuts = find_cuts(self.program, lies, axis, self.sizes) if isinstance(found, Told) else None
        split = split_of(self.structure, cuts, self.members, self.sizes.shape) if cuts else None
        if cuts is None or split is None:
            return found
        with_cuts = self._rule(name, given, cuts.outputs)
        return replace(with_cuts, split=split) if isinstance(with_cuts, Rule) else found

    def by_addends(self) -> Iterator[Rule | Told]:
        """The sets of arguments that may be addends: those that the function is linear in, together."""
        real = [p for p, spec in enumerate(self.specs) if spec.dtype.is_floating_point or spec.dtype.is_complex]
        few = len(real) <= _MOST_SUBSETS
        counts = range(1, len(real) + 1) if few else sorted({1, 2, len(real)})
        subsets = [subset for count in counts for subset in combinations(real, count)]
        refused: dict[str, Told] = {}
        for subset in subsets:
            lies = {buffer.name: Lies("sum") if p in subset else SAME for p, buffer in enumerate(self.inputs)}
            given: list[Placement] = [Partial() if p in subset else Replicate() for p in range(len(self.specs))]
            name = "addends of " + ", ".join(self.specs[p].name for p in subset)
            found = self._rule(name, given, follow(self.program, lies, None, self.sizes))
            if isinstance(found, Rule):
                yield found
            elif len(subset) == 1:
                refused[name] = found
        yield from refused.values()

    def _rule(self, name: str, given: Sequence[Placement], lies: Sequence[Lies]) -> Rule | Told:
        made: list[Placement] = []
        even = False
        for member in self.members:
            one, buffer = lies[member], self.outputs[member]
            if one.kind == "unknown":
                return Told(name, one.why)
            if one.power and not (buffer.dtype.is_floating or buffer.dtype.is_complex):
                return Told(name, "an integer is computed from the size of the axis")
            if one.at is None:
                made.append(Replicate() if one.kind == "same" else Partial(REDUCTIONS[one.kind]))
                continue
            if one.at.outer != ONE:
                return Told(name, "a result has its elements in several places of one dimension")
            even = even or not one.at.is_whole
            made.append(Shard(one.at.dimension))
        powers = tuple(-lies[member].power for member in self.members)
        return Rule(name, tuple(given), tuple(made), powers, even)


def as_input(program: Program, spec: TensorSpec) -> Buffer:
    """The input of a Program that an argument is; one that it does not read has at most sizes."""
    for buffer in program.inputs:
        if buffer.name == spec.name:
            return buffer
    shape = [size_symbol(spec.name, place) if size > 1 else integer(size) for place, size in enumerate(spec.sizes)]
    return Buffer(spec.name, DType.FLOAT32, tuple(shape))
