"""`--record-sweeps`: which models of others kernels serve, in docs/wild.json and in the table of docs/wild.md."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from tests.suite.sweep_record import where

RECORD, PAGE = "docs/wild.json", "docs/wild.md"
BEGIN, END = "<!-- from wild.json, by pytest -m nightly --record-sweeps tests/wild -->", "<!-- end -->"
_MOST_NAMED = 6
WHOLE, BY_PARTS, IN_PART, NOTHING = "whole", "all by parts", "in part", "nothing"
_LIBRARY = frozenset(
    (
        *("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "linear", "matmul", "mm"),
        *("bmm", "addmm", "baddbmm", "einsum", "embedding", "max_pool2d", "avg_pool2d"),
        *("adaptive_avg_pool2d", "scaled_dot_product_attention", "cross_entropy_loss", "nll_loss"),
    )
)
_MOVES = frozenset(
    (
        *("alias", "view", "reshape", "flatten", "unflatten", "permute", "transpose", "t", "numpy_T"),
        *("movedim", "squeeze", "unsqueeze", "expand", "slice", "select", "narrow", "chunk", "split"),
        *("split_with_sizes", "unbind", "detach", "to", "contiguous", "clone", "copy_", "repeat", "cat"),
        *("stack", "pad", "roll", "lift_fresh", "index", "index_select", "gather", "zeros", "ones"),
        *("empty", "full", "fill_", "zero_", "new_zeros", "new_ones", "arange", "zeros_like", "ones_like"),
    )
)


def how_served(told: str, beside: Mapping[str, int]) -> dict[str, Any]:
    """What serves a model, and how many modules have kernels.

    Args:
        told: What `explain()` tells.
        beside: The operations that run beside kernels.
    """
    first, *_ = lines = told.splitlines()
    parts = sum("kernels: " in line for line in lines)
    served = WHOLE if "kernels: " in first else NOTHING if parts == 0 else IN_PART if beside else BY_PARTS
    return {"served": served, "parts": parts, "beside": dict(sorted(beside.items()))}


def operations_beside(call: Callable[[], object]) -> Mapping[str, int]:
    """The operations of PyTorch that a call runs outside of kernels, but for those that a program of kernels calls too.

    Those are products, convolutions, pools, attention and losses of PyTorch's library, and what moves or makes memory.
    A dropout that drops nothing is none either: it returns its argument.
    """
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        call()
    outermost = [event for event in profile.events() if _is_outermost(event) and not _drops_nothing(event)]
    names = [event.name.removeprefix("aten::") for event in outermost]
    return Counter(name for name in names if name not in _LIBRARY and name not in _MOVES)


def _is_outermost(event: Any) -> bool:
    return event.cpu_parent is None and event.name.startswith("aten::")


def _drops_nothing(event: Any) -> bool:
    return event.name in ("aten::dropout", "aten::dropout_") and not event.cpu_children


def write(repository: Path, found: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the results of a run, which replace earlier ones of the same models."""
    path, page = repository / RECORD, repository / PAGE
    record = json.loads(path.read_text()) if path.exists() else {}
    here = {name: value for name, value in where(repository).items() if name in ("commit", "date", "torch")}
    record |= {name: {**each, **here} for name, each in found.items()}
    path.write_text(json.dumps(record, indent=2, sort_keys=True) + "\n")
    before, _, rest = page.read_text().partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{table(record)}\n{END}{rest.partition(END)[2]}")


def table(record: Mapping[str, Mapping[str, Any]]) -> str:
    """How many models are served how, then a row for each."""
    counts = Counter(each["served"] for each in record.values())
    told = ", ".join(f"{how}: {counts[how]}" for how in (WHOLE, BY_PARTS, IN_PART, NOTHING))
    lines = [
        f"{len(record)} models; {told}.",
        "",
        "| model | served | modules with kernels | operations beside | on | commit |",
        "|---|---|---|---|---|---|",
    ]
    for name, each in sorted(record.items()):
        told = _told(each.get("beside", {}))
        lines.append(f"| `{name}` | {each['served']} | {each['parts']} | {told} | {each['date']} | {each['commit']} |")
    return "\n".join(lines)


def _told(beside: Mapping[str, int]) -> str:
    named = [name if count == 1 else f"{count} {name}" for name, count in beside.items()]
    return ", ".join(named[:_MOST_NAMED]) + (f" and {len(named) - _MOST_NAMED} more" if named[_MOST_NAMED:] else "")
