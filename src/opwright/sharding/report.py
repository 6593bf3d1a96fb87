"""What `op.sharding` returns: the rules of an operator, what each moves, and why there are no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from opwright.operators.base import BaseOperator
from opwright.report.shown import Shown
from opwright.sharding.choose import collective
from opwright.sharding.known import rules_for, specs_of
from opwright.sharding.rule import REPLICATE, Rule, Told, told
from opwright.tracing.interface.specs import TensorSpec
from opwright.tracing.torch_hooks.spread import has_spread, spec_of

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True, slots=True, repr=False)
class Sharding(Shown):
    """How an operator runs shard by shard. Each rule is for one dimension of a mesh, and proven on samples.

    Attributes:
        operator: Its name.
        arguments: The names of its arguments that are tensors, in the order of a rule's inputs.
        rules: The rules; the first is that every process computes everything.
        told: Why an axis cannot be spread, or an argument cannot be addends.
        placements: The placements of the arguments that were given, one list for each dimension of their mesh; empty
            for plain tensors.
    """

    operator: str
    arguments: tuple[str, ...]
    rules: tuple[Rule, ...]
    told: tuple[Told, ...]
    placements: tuple[tuple[Any, ...], ...] = ()

    def collectives(self, rule: Rule) -> tuple[str, ...]:
        """What a rule takes for the given placements, such as "x: all-gather"; nothing for plain tensors."""
        found = []
        for level, placements in enumerate(self.placements):
            for name, now, to in zip(self.arguments, placements, rule.inputs, strict=True):
                where = f" (mesh dimension {level})" if len(self.placements) > 1 else ""
                if now != to and to.is_partial():
                    found.append(f"{name}: not from here{where}")
                elif word := collective(now, to):
                    found.append(f"{name}: {word}{where}")
        if rule.split is not None:
            found += [f"{' and '.join(dict.fromkeys(one.functions))} of parts: all-reduce" for one in rule.split.before]
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values that `json.dumps` takes."""
        return {
            "operator": self.operator,
            "arguments": list(self.arguments),
            "rules": [{**rule.to_dict(), "collectives": list(self.collectives(rule))} for rule in self.rules],
            "told": [{"name": one.name, "why": one.why} for one in self.told],
        }

    def _table(self) -> RenderableType:
        from rich import box
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table("spread", *self.arguments, "results", "collectives", box=box.SIMPLE_HEAD)
        for rule in self.rules:
            made = ", ".join(map(told, rule.outputs)) + (" (even parts)" if rule.even else "")
            table.add_row(rule.name, *map(told, rule.inputs), made, "\n".join(self.collectives(rule)))
        return Group(Text(self.operator), table, *[Text(f"no rule for {one}") for one in self.told])


def sharding_of(operator: BaseOperator, args: Sequence[Any]) -> Sharding:
    """The report of an operator.

    Args:
        operator: It takes flat arguments.
        args: DTensors, or tensors as a whole, and constants.
    """
    tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
    specs = specs_of(operator, args, [tuple(tensor.shape) for tensor in tensors])
    derived = rules_for(operator, specs)
    names = tuple(spec.name for spec in specs if isinstance(spec, TensorSpec))
    return Sharding(operator.name, names, derived.rules, derived.told, _placements(tensors))


def _placements(tensors: Sequence[torch.Tensor]) -> tuple[tuple[Any, ...], ...]:
    spread = [tensor for tensor in tensors if has_spread([tensor])]
    if not spread:
        return ()
    levels = range(len(spec_of(spread[0]).placements))
    return tuple(
        tuple(spec_of(one).placements[level] if has_spread([one]) else REPLICATE for one in tensors) for level in levels
    )
