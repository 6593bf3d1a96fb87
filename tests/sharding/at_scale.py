"""The block on 1,024 GPUs, on paper: what its operators send, from their rules and the bytes that these move.

python -m tests.sharding.at_scale           # prints the tables of docs/sharding-at-scale.md
python -m tests.sharding.at_scale --write   # and writes them into it
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.distributed.tensor import Replicate, Shard
from torch.nn import functional

import opwright
from opwright.sharding.choose import Given, bytes_moved, choose
from opwright.sharding.known import rules_for, specs_of
from opwright.sharding.rule import Rule, told

PAGE = Path(__file__).parents[2] / "docs/sharding-at-scale.md"
MESH = (128, 8)  # data × tensor
SEQUENCES, LENGTH, WIDTH, INNER, HEADS, HEAD, WORDS = 1024, 4096, 8192, 28672, 64, 128, 128256
BANDWIDTHS = (50e9, 450e9)  # bytes a second for each GPU: between nodes, and inside of one
LATENCY = 10e-6  # seconds of one collective
_R, _ROWS = Replicate(), (Shard(0), Replicate())


def norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """An RMS norm, in float32 inside."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * weight


def rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary positions of heads."""
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def gate(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The gate of a feed-forward layer."""
    return functional.silu(x) * y


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A residual, with the scale that some models have."""
    return x + 0.5 * y


def normalizer(logits: torch.Tensor) -> torch.Tensor:
    """The logarithm of the sum of a row of words, the part of cross entropy that needs all of them."""
    return torch.logsumexp(logits.float(), -1)


@dataclass(frozen=True)
class Case:
    """An operator in a layout.

    Attributes:
        layout: How the block is spread.
        function: The operator.
        shapes: Of its arguments, bfloat16, as a whole.
        placements: Of each, along data and tensor.
        calls: How often a layer, or the model for the last, calls it.
    """

    layout: str
    function: Callable[..., Any]
    shapes: Sequence[tuple[int, ...]]
    placements: Sequence[tuple[Any, ...]]
    calls: int


_WIDE, _OF_HEADS = (SEQUENCES, LENGTH, WIDTH), (SEQUENCES, LENGTH, HEADS, HEAD)
_SEQUENCE, _FEATURES = (Shard(0), Shard(1)), (Shard(0), Shard(2))
CASES = (
    Case("sequence", norm, [_WIDE, (WIDTH,)], [_SEQUENCE, (_R, _R)], 2),
    Case("sequence", add, [_WIDE, _WIDE], [_SEQUENCE, _SEQUENCE], 2),
    Case("features", norm, [_WIDE, (WIDTH,)], [_FEATURES, (_R, Shard(0))], 2),
    Case("features", add, [_WIDE, _WIDE], [_FEATURES, _FEATURES], 2),
    Case(
        "heads", rotary, [_OF_HEADS, (LENGTH, 1, HEAD // 2), (LENGTH, 1, HEAD // 2)], [_FEATURES, (_R, _R), (_R, _R)], 2
    ),
    Case("inner", gate, [(SEQUENCES, LENGTH, INNER)] * 2, [_FEATURES, _FEATURES], 1),
    Case("words", normalizer, [(SEQUENCES, LENGTH, WORDS)], [_FEATURES], 1),
)


def rows() -> list[str]:
    """The table, one line for each operator."""
    made = [
        "| spread along tensor | operator | rules along data; tensor | collectives | sent by each GPU, MB | ms "
        "| sent if gathered, MB | ms |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return made + [_row(case) for case in CASES]


def _row(case: Case) -> str:
    operator = opwright.operator(case.function, name=f"tests::at_scale_{case.function.__name__}")
    sample = [torch.empty(0, dtype=torch.bfloat16) for _ in case.shapes]
    flat, leaves = operator.flattened(tuple(sample), {})
    specs = specs_of(flat, leaves, case.shapes)
    derived = rules_for(flat, specs)
    sizes = {f"{s.name}_size_{d}": n for s in specs for d, n in enumerate(s.sizes)}  # type: ignore[union-attr]
    between = [rule.split.bytes(sizes) if rule.split else 0 for rule in derived.rules]
    given = [
        Given(shape, 2 * torch.Size(shape).numel(), to) for shape, to in zip(case.shapes, case.placements, strict=True)
    ]
    results = [0] * len(derived.rules[0].outputs)  # results stay as they are
    choice = choose(derived.rules, given, results, MESH, between)
    assert choice is not None
    reduced = {id(rule): size for rule, size in zip(derived.rules, between, strict=True)}
    chosen = [_cost(rule, level, case, reduced[id(rule)]) for level, rule in enumerate(choice.rules)]
    gathered = [chosen[0], _cost(derived.rules[0], 1, case, 0)]
    spoken = "; ".join(_said(rule) for rule in choice.rules)
    count = sum(collectives for _, collectives, _ in chosen)
    return (
        f"| {case.layout} | {case.function.__name__}, {case.calls} × | {spoken} | {count} | {_megabytes(chosen, case)} "
        f"| {_milliseconds(chosen, case)} | {_megabytes(gathered, case)} | {_milliseconds(gathered, case)} |"
    )


def _cost(rule: Rule, level: int, case: Case, reduced: int) -> tuple[float, int, float]:
    """Bytes that one GPU sends for one call, collectives, and seconds."""
    count, others = MESH[level], MESH[1 - level]
    sent, collectives = 0.0, 0
    for shape, placements, to in zip(case.shapes, case.placements, rule.inputs, strict=True):
        elsewhere = others if isinstance(placements[1 - level], Shard) else 1
        moved = bytes_moved(placements[level], to, 2 * torch.Size(shape).numel() // elsewhere, count)
        sent, collectives = sent + moved, collectives + bool(moved)
    if rule.split is not None:
        elsewhere = others if isinstance(case.placements[0][1 - level], Shard) else 1
        sent += 2 * reduced / elsewhere * (count - 1) / count
        collectives += rule.split.collectives
    return sent, collectives, sent / BANDWIDTHS[level] + collectives * LATENCY


def _said(rule: Rule) -> str:
    return ", ".join(map(told, rule.inputs)) + " → " + ", ".join(map(told, rule.outputs))


def _megabytes(costs: Sequence[tuple[float, int, float]], case: Case) -> str:
    return f"{sum(sent for sent, _, _ in costs) * case.calls / 1e6:,.1f}"


def _milliseconds(costs: Sequence[tuple[float, int, float]], case: Case) -> str:
    return f"{sum(seconds for _, _, seconds in costs) * case.calls * 1e3:,.2f}"


def written(text: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = text.partition("<!-- from python -m tests.sharding.at_scale --write -->\n")
    _, _, after = rest.partition("<!-- end -->")
    return (
        before
        + "<!-- from python -m tests.sharding.at_scale --write -->\n"
        + "\n".join(rows())
        + "\n<!-- end -->"
        + after
    )


if __name__ == "__main__":
    print("\n".join(rows()))
    if "--write" in sys.argv[1:]:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
