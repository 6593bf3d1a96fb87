"""A budget for what is saved: which values are dropped, and computed again in the backward pass.

The start is what "auto" saves. While that is more than the budget, the value goes whose bytes cost the least work to do
without. Then what fits after all comes back, beginning with what spares the most work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

from torch.fx import Node

from opwright.derivation.joint import Joint
from opwright.derivation.saving.costs import work
from opwright.tracing.graph import ancestors


@dataclass(frozen=True, slots=True)
class Budget:
    """What a budget came to, for the sizes of the traced call.

    Attributes:
        most_bytes: What it allows beside the arguments.
        auto_bytes: What "auto" keeps beside them.
        kept_bytes: What is kept; more than is allowed only if it is random numbers, which cannot be drawn again.
        dropped: What "auto" keeps and the budget does not, with its bytes.
        work: The operations that the backward pass does for the want of it.
    """

    most_bytes: int
    auto_bytes: int
    kept_bytes: int
    dropped: tuple[tuple[Node, int], ...]
    work: float


def spend(
    joint: Joint, border: Sequence[Node], saved: Sequence[Node], policy: float, size: Callable[[Node], int]
) -> tuple[list[Node], Budget]:
    """Choose what to keep of what is saved without a budget.

    Args:
        joint: The reference and its derivative in one graph.
        border: The forward values that the backward pass reads.
        saved: What "auto" saves, without arguments.
        policy: The budget: an int in bytes, a float as a share.
        size: The bytes of a value.
    """
    works = {node: work(joint, node) for node in ancestors(border)}

    def again(kept: Set[Node]) -> float:
        return sum(works[node] for node in ancestors(border, stop=kept) if node not in kept)

    def total(kept: Set[Node]) -> int:
        return sum(map(size, kept))

    every = set(saved)
    kept, auto_bytes = set(saved), total(every)
    most_bytes = policy if isinstance(policy, int) else math.floor(policy * auto_bytes)
    while total(kept) > most_bytes:
        now = again(kept)
        prices = {node: (again(kept - {node}) - now) / max(size(node), 1) for node in saved if node in kept}
        cheapest = min(prices, key=prices.__getitem__)
        if math.isinf(prices[cheapest]):
            break
        kept.remove(cheapest)
    while fitting := [node for node in saved if node not in kept and total(kept) + size(node) <= most_bytes]:
        left = {node: again(kept | {node}) for node in fitting}
        best = min(left, key=left.__getitem__)
        if left[best] == again(kept):
            break
        kept.add(best)
    dropped = tuple((node, size(node)) for node in saved if node not in kept)
    chosen = [node for node in saved if node in kept]
    return chosen, Budget(most_bytes, auto_bytes, total(kept), dropped, again(kept) - again(every))
