"""bench_table: for each sample the contenders with their times, speed-ups and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from opwright.report.figures import error_beside, median_and_spread, ratio, unsteady

_PASSAGES = {"forward": "forward", "training": "fwd+bwd"}
_PEERS = {"composed": "vs eager", "torch.compile": "vs compile"}


def bench_table(report: Mapping[str, Any]) -> RenderableType:
    """Render the JSON of a `BenchReport`: microseconds, speed-ups, and errors against float64 followed by eager's."""
    entries: Sequence[Mapping[str, Any]] = report["entries"]
    samples = dict.fromkeys(entry["sample"] for entry in entries)
    tables = [_table(sample, [entry for entry in entries if entry["sample"] == sample]) for sample in samples]
    missing = [Text(f"{rung}: not here: {reason}") for rung, reason in report["missing"].items()]
    headline = Text(f"{report['subject']}, {report['dtype']} on {report['device']}; times in µs, medians ± quartiles")
    doubt = [Text(text, "yellow")] if (text := unsteady(entries)) else []
    return Group(headline, *doubt, *tables, *_remarks(entries), *missing, _machine(report["machine"]))


def _table(sample: str, entries: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title=Text(sample, "bold"), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("rung", no_wrap=True)
    for passage in _PASSAGES.values():
        table.add_column(passage, justify="right", style="bold")
        for peer in _PEERS.values():
            table.add_column(peer, justify="right")
    table.add_column("error (eager's)", justify="right")
    for entry in entries:
        table.add_row(_name(entry), *_times(entry), _error(entry))
    return table


def _name(entry: Mapping[str, Any]) -> Text:
    if entry["outcome"] == "measured":
        return Text(entry["contender"])
    style = "bold red" if entry["outcome"] == "wrong" else "yellow"
    return Text(f"{entry['contender']} ").append(entry["outcome"].upper(), style)


def _times(entry: Mapping[str, Any]) -> list[str]:
    cells = []
    for passage in _PASSAGES:
        timing = entry[passage]
        cells.append(median_and_spread(timing))
        cells += [ratio(entry["speedup"][passage][peer]) for peer in _PEERS]
    return cells


def _error(entry: Mapping[str, Any]) -> str:
    """Write the larger of the errors of outputs and gradients."""
    pairs = [(entry["error"], entry["eager_error"]), (entry["gradient_error"], entry["eager_gradient_error"])]
    measured = [pair for pair in pairs if pair[0] is not None]
    return error_beside(*max(measured, default=(None, None)))


def _remarks(entries: Sequence[Mapping[str, Any]]) -> list[Text]:
    return [Text(f"{entry['contender']}, {entry['sample']}: {entry['reason']}") for entry in entries if entry["reason"]]


def _machine(machine: Mapping[str, Any]) -> Text:
    facts = [
        machine["cpu"],
        f"{machine['cores']} cores",
        f"{machine['torch_threads']} torch threads",
        machine["accelerator"],
        f"torch {machine['torch']}",
        f"python {machine['python']}",
        machine["compiler"] or "no C++ compiler",
        machine["date"],
    ]
    return Text("; ".join(fact for fact in facts if fact), "dim")
