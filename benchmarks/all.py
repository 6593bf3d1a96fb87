"""All benchmarks, and which targets are met.

python benchmarks/all.py [--json FILE]
"""

from __future__ import annotations

import author_functions
import axes
import blocks
import call_cost
import calls
import conv_bn
import first_call
import func
import library
import lltm_cell
import lltm_step
import norms
import repeated_gradients
import rows
import saved_bytes
import second_order
import transforms
import written_by_hand
from scorecard import Options, Row, Scorecard, run_script

BENCHMARKS = (
    *(lltm_cell, lltm_step, rows, norms, axes, blocks, call_cost, second_order, transforms, func),
    *(repeated_gradients, saved_bytes, first_call, library, author_functions),
)


def measure(options: Options) -> list[Scorecard]:
    """Run one after the other; the summary comes last."""
    cards = [benchmark.measure(options) for benchmark in BENCHMARKS]
    cards += [*conv_bn.measure(options), *calls.measure(options), *written_by_hand.measure(options)]
    return [*cards, _summary(cards)]


def _summary(cards: list[Scorecard]) -> Scorecard:
    counts = [
        Row(card.title, {"targets": len(card.targets), "met": sum(target.met for target in card.targets)})
        for card in cards
    ]
    return Scorecard("summary", counts, [target for card in cards for target in card.targets])


if __name__ == "__main__":
    run_script(measure, __doc__)
