"""Judge operators on all placements of their arguments, and count what came of it: the figures of docs/sharding.md.

    python -m tests.sharding.sweep [--grid] [--names spread_norm,spread_gate] [--part 2/5] [--seconds 900]

Each operator has processes of its own, so that one that hangs is counted and stops no other.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter

from opwright.checking.parts import part_of
from tests.sharding.on_four import OPERATORS
from tests.sharding.processes import on_mesh


def main() -> None:
    """Sweep, and print a line for each operator, its faults, and the sum."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grid", action="store_true", help="on a mesh of 2 x 2, a seventh of the combinations")
    parser.add_argument("--names", default=",".join(OPERATORS))
    parser.add_argument("--part", default="", help="one of n parts of the operators, such as 2/5")
    parser.add_argument("--seconds", type=float, default=900.0, help="when an operator counts as hung")
    options = parser.parse_args()
    total: Counter[str] = Counter()
    for name in part_of(options.names.split(","), options.part):
        levels = 2 if options.grid else 1
        told = on_mesh("tests.sharding.on_four", "measure", 4, (name,), levels, seconds=options.seconds)
        counts = Counter[str](next((json.loads(line) for line in told if line.startswith("{")), {"hung": 1}))
        total += counts
        print(name, _line(counts), flush=True)
        for line in told:
            if not line.startswith("{"):
                print("   ", line, flush=True)
    print("all", _line(total))


def _line(counts: Counter[str]) -> str:
    calls = sum(counts[word] for word in ("right", "wrong", "raised", "hung"))
    words = ", ".join(f"{counts[word]} {word}" for word in ("right", "wrong", "raised", "hung"))
    return f"{calls} calls: {words}; {counts['kernels']} by kernels"


if __name__ == "__main__":
    main()
