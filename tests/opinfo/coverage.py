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
_MOST_LISTED = 6
_TRACEABLE = _WORST_FIRST[:-1]
_TAGGED, _ELEMENT_WISE = ("pointwise", "reduction"), ("pointwise", "reduction", "ufunc")
_HEAD = """# Coverage

Which of PyTorch's operations run as kernels. Each entry is an operation of PyTorch's own test table (`op_db`) in a
dtype, with its gradients, on the first few of its sample inputs; the worst sample counts. Where an operation changes an
argument, or returns one or a view of one, the function that is judged does it with a copy.

- **kernel**: fused kernels only, forward and backward
- **library**: with calls of PyTorch's library
- **reference**: the function as written
- **untraceable**: PyTorch's own tracer refuses it too
- **not tried**: no tensors, empty or sparse ones, undefined values, or results that are not tensors

How the shares are counted: of the entries that are kernel, library or reference. An entry is *tagged* if an overload of
the ATen operation of its name has `torch.Tag.pointwise` or `torch.Tag.reduction`, or if its OpInfo is a
`ReductionOpInfo`. One that is a `UnaryUfuncInfo` or `BinaryUfuncInfo` without such a tag is *element-wise* too: that is
conversions, and the rare functions of `torch.special`, which stay calls of PyTorch's library.

To write it again (`--quick` builds with -O1; a sweep that was stopped goes on):

    python -m tests.opinfo.sweep --json records.jsonl --dtypes float32 --samples 2 --quick --jobs 2
    python -m tests.opinfo.sweep --json records.jsonl --dtypes float64 --samples 2 --quick --jobs 2
    python -m tests.opinfo.coverage records.jsonl > docs/coverage.md
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
    wrong = [f"- `{entry}`: {text}" for entry, record in records.items() for text in record["wrong"]]
    parts = [
        _HEAD,
        "## Totals\n",
        *totals(records),
        *(["\n## Wrong\n", *wrong] if wrong else []),
        "\n## Why the reference serves\n",
        *reasons(records.values()),
        "\n## What element-wise operations and reductions call of the library\n",
        *calls(records.values()),
        "\n## Entries\n",
        *table(records),
    ]
    return "\n".join(parts) + "\n"


def totals(records: Mapping[str, Record]) -> list[str]:
    """The shares for each dtype, and what is wrong."""
    rows = []
    for dtype in sorted({_dtype(record) for record in records.values()}):
        of_dtype = [record for record in records.values() if _dtype(record) == dtype]
        shares = [
            share(of_dtype, ("kernel", "library")),
            share([record for record in of_dtype if record["group"] in _TAGGED], ("kernel",)),
            share([record for record in of_dtype if record["group"] in _ELEMENT_WISE], ("kernel",)),
        ]
        wrong = sum(bool(record["wrong"]) for record in of_dtype)
        rows.append(f"| {dtype} | {' | '.join(shares)} | {wrong} |")
    head = "| dtype | without the reference | tagged: fused alone | tagged or element-wise: fused alone | wrong |"
    return [head, "|---|---|---|---|---|", *rows]


def _dtype(record: Record) -> str:
    return str(record["entry"].partition("|")[2])


def calls(records: Iterable[Record]) -> list[str]:
    """The library operations that keep tagged and element-wise entries from being fused alone."""
    found: dict[str, list[str]] = {}
    for record in records:
        if record["group"] in _ELEMENT_WISE and rung_of(record) == "library":
            for call in record["calls"]:
                found.setdefault(call, []).append(record["entry"].partition("|")[0])
    ordered = sorted(found.items(), key=lambda item: (-len(set(item[1])), item[0]))
    return ["| library operation | of |", "|---|---|", *(f"| {call} | {_listed(names)} |" for call, names in ordered)]


def reasons(records: Iterable[Record]) -> list[str]:
    """The reasons for the reference, the most frequent first."""
    found: dict[str, list[str]] = {}
    for record in records:
        if rung_of(record) in ("reference", "crash"):
            for reason in record["reasons"]:
                found.setdefault(reason, []).append(record["entry"].replace("|", " "))
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    rows = [f"| {len(set(entries))} | {_cell(reason)} | {_listed(entries)} |" for reason, entries in ordered]
    return ["| entries | reason | of |", "|---|---|---|", *rows]


def table(records: Mapping[str, Record]) -> list[str]:
    """Operation by dtype."""
    names = sorted({entry.partition("|")[0] for entry in records})
    dtypes = sorted({entry.partition("|")[2] for entry in records})
    rungs = {entry: rung_of(record) for entry, record in records.items()}
    rows = [f"| {name} | {' | '.join(rungs.get(f'{name}|{dtype}', '') for dtype in dtypes)} |" for name in names]
    return [f"| operation | {' | '.join(dtypes)} |", f"|---|{'---|' * len(dtypes)}", *rows]


def _listed(names: Iterable[str]) -> str:
    """All names, or the first and how many more."""
    distinct = sorted(set(names))
    more = f" and {len(distinct) - _MOST_LISTED} more" if len(distinct) > _MOST_LISTED else ""
    return ", ".join(distinct[:_MOST_LISTED]) + more


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")[:160]


if __name__ == "__main__":
    print(page(read_records(Path(sys.argv[1]))), end="")
