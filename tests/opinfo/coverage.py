"""A sweep as a page: `python -m tests.opinfo.coverage FILE > docs/coverage.md`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.opinfo.sweep import read_records

Record = Mapping[str, Any]
_WORST_FIRST = ("crash", "reference", "library", "kernel", "untraceable")
_TRACEABLE = _WORST_FIRST[:-1]
_HEAD = """# Coverage

Which of PyTorch's operations run as kernels. Each entry is an operation of PyTorch's own test table (`op_db`) in a
dtype, with its gradients, on the first few of its sample inputs; the worst sample counts.

- **kernel**: fused kernels only, forward and backward
- **library**: with calls of PyTorch's library
- **reference**: the function as written
- **untraceable**: PyTorch's own tracer refuses it too
- **not tried**: no tensors, empty or sparse ones, undefined values, or results that are not tensors

Written by `python -m tests.opinfo.coverage`, from the records of `python -m tests.opinfo.sweep`.
"""


def rung_of(record: Record) -> str:
    """Who serves the worst-served sample of an entry; "not tried" if it has none."""
    return next((rung for rung in _WORST_FIRST if rung in record["served"]), "not tried")


def share(records: Iterable[Record], rungs: Sequence[str]) -> str:
    """How many of the traceable entries are served so."""
    found = Counter(map(rung_of, records))
    total = sum(found[rung] for rung in _TRACEABLE)
    served = sum(found[rung] for rung in rungs)
    return f"{served} of {total} ({served / max(total, 1):.1%})"


def page(records: Mapping[str, Record]) -> str:
    """The whole page."""
    tagged = [record for record in records.values() if record["group"] in ("pointwise", "reduction")]
    wrong = [f"- `{entry}`: {text}" for entry, record in records.items() for text in record["wrong"]]
    parts = [
        _HEAD,
        "## Totals\n",
        f"- without the reference: {share(records.values(), ('kernel', 'library'))}",
        f"- tagged pointwise or reduction by PyTorch, in fused kernels alone: {share(tagged, ('kernel',))}",
        f"- wrong: {len(wrong)}",
        *(["\n## Wrong\n", *wrong] if wrong else []),
        "\n## Why the reference serves\n",
        *reasons(records.values()),
        "\n## Entries\n",
        *table(records),
    ]
    return "\n".join(parts) + "\n"


def reasons(records: Iterable[Record]) -> list[str]:
    """The reasons for the reference, the most frequent first."""
    found: dict[str, list[str]] = {}
    for record in records:
        if rung_of(record) in ("reference", "crash"):
            for reason in record["reasons"]:
                found.setdefault(reason, []).append(record["entry"].replace("|", " "))
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    rows = [f"| {len(set(entries))} | {_cell(reason)} | {entries[0]} |" for reason, entries in ordered]
    return ["| entries | reason | such as |", "|---|---|---|", *rows]


def table(records: Mapping[str, Record]) -> list[str]:
    """Operation by dtype."""
    names = sorted({entry.partition("|")[0] for entry in records})
    dtypes = sorted({entry.partition("|")[2] for entry in records})
    rungs = {entry: rung_of(record) for entry, record in records.items()}
    rows = [f"| {name} | {' | '.join(rungs.get(f'{name}|{dtype}', '') for dtype in dtypes)} |" for name in names]
    return [f"| operation | {' | '.join(dtypes)} |", f"|---|{'---|' * len(dtypes)}", *rows]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")[:160]


if __name__ == "__main__":
    print(page(read_records(Path(sys.argv[1]))), end="")
