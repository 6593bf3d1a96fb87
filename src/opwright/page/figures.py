"""Plots of what was measured, from the JSON of the facts: times and memory over sizes, what is saved, a roofline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from opwright.drawing.plots import Bar, Series, bars_svg, lines_svg, roofline_svg
from opwright.report.figures import in_units

Entry = Mapping[str, Any]

# What each contender is called on the page, and its colour.
CONTENDERS = {
    "composed": ("eager", 0),
    "torch.compile": ("torch.compile", 1),
    "cpp": ("opwright", 2),
    "cuda": ("opwright, CUDA", 3),
}
_ACROSS = "elements of all arguments"
_PARTS = (("arguments", 4), ("results", 5), ("memory beside them", 6))


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot: its title, what is to be said of it, the SVG, and what its colours are."""

    title: str
    words: str
    svg: str
    keys: tuple[tuple[str, int], ...]


def speed_plots(facts: Mapping[str, Any]) -> list[Plot]:
    """Times over sizes: forward, forward and backward, second derivatives."""
    elements = _elements(facts)
    plots = []
    if facts["bench"]:
        entries = facts["bench"]["entries"]
        for passage, title in (("forward", "Forward"), ("training", "Forward and backward")):
            timed = [(each, each[passage]["median_us"]) for each in entries if each[passage]]
            plots.append(_lines(timed, elements, f"time-{passage}", title, "time, µs"))
    if facts["second_order"]:
        entries = facts["second_order"]["entries"]
        timed = [(each, each["timing"]["median_us"]) for each in entries if each["timing"]]
        reasons = {f"{_name(each)}: {each['reason']}" for each in entries if each["reason"]}
        title = "Second derivatives"
        plots.append(_lines(timed, elements, "time-second", title, "time, µs", "; ".join(sorted(reasons))))
    return [plot for plot in plots if plot]


def memory_plots(facts: Mapping[str, Any]) -> list[Plot]:
    """What is kept for the backward pass: bars at the largest sample, and all of it over sizes."""
    if not facts["memory"]:
        return []
    order = list(CONTENDERS)
    entries = [each for each in facts["memory"]["entries"] if not each["reason"] and each["contender"] in order]
    entries.sort(key=lambda each: order.index(each["contender"]))
    if not entries:
        return []
    elements = _elements(facts)
    largest = max(entries, key=lambda each: elements.get(each["sample"], 0))["sample"]
    parts = {_name(each): _parts(each) for each in entries if each["sample"] == largest}
    unit, factor = _unit(max(sum(each) for each in parts.values()))
    bars = [Bar(name, tuple(size / factor for size in sizes)) for name, sizes in parts.items()]
    words = f"At {largest}. Arguments and results exist anyway; only what is beside them costs memory."
    shown = Plot("Kept for the backward pass", words, bars_svg(bars, _PARTS, "kept", unit), _PARTS)
    total = [(each, sum(_parts(each))) for each in entries]
    plots = [shown, _lines(total, elements, "memory", "Kept, over sizes", "bytes")]
    return [plot for plot in plots if plot]


def roofline_plot(facts: Mapping[str, Any]) -> Plot | None:
    """What the kernels attain, below what the machine does; none if the work or the times are not known."""
    if not facts["roofline"] or not facts["bench"] or not facts["roofline"]["work"]:
        return None
    limits = facts["roofline"]["limits"]
    times = {(each["sample"], each["contender"]): each for each in facts["bench"]["entries"]}
    points: dict[str, list[tuple[float, float]]] = {"forward": [], "training": []}
    for work in facts["roofline"]["work"]:
        timing = times.get((work["sample"], "cpp"), {}).get(work["passage"])
        if timing:
            rate = work["operations"] / timing["median_us"] / 1e3
            points[work["passage"]].append((work["operations"] / work["size_bytes"], rate))
    if not any(points.values()):
        return None
    bandwidth, peak = limits["bytes_per_second"] / 1e9, limits["operations_per_second"] / 1e9
    names = {"forward": ("forward", 2), "training": ("forward and backward", 3)}
    series = [Series(*names[passage], tuple(found)) for passage, found in points.items()]
    copied = in_units(round(limits["bytes_per_second"]))
    words = (
        f"One point for each size. The roof is what this machine was measured to do: {copied} in a second, read and "
        f"written by a copy of 128 MiB, and {peak:.3g} · 10⁹ operations in a second, in a product of matrices. Points "
        "above the slope are of sizes that fit into the caches. Each function, such as tanh, counts as one operation."
    )
    svg = roofline_svg(series, bandwidth, peak, "roofline")
    return Plot("Roofline", words, svg, tuple(names.values()))


def _lines(
    timed: Iterable[tuple[Entry, float]], elements: Mapping[str, float], name: str, title: str, up: str, words: str = ""
) -> Plot | None:
    found: dict[str, list[tuple[float, float]]] = {}
    for entry, value in timed:
        if entry["contender"] in CONTENDERS and value > 0 and entry["sample"] in elements:
            found.setdefault(entry["contender"], []).append((elements[entry["sample"]], value))
    if not found:
        return None
    ordered = [contender for contender in CONTENDERS if contender in found]
    series = [Series(*CONTENDERS[contender], tuple(found[contender])) for contender in ordered]
    return Plot(title, words, lines_svg(series, name, _ACROSS, up), tuple(CONTENDERS[each] for each in ordered))


def _elements(facts: Mapping[str, Any]) -> dict[str, float]:
    """The elements of each sample."""
    return {each["name"]: float(each["elements"]) for each in facts["samples"]}


def _parts(entry: Entry) -> tuple[int, int, int]:
    return entry["arguments_bytes"], entry["results_bytes"], entry["extra_bytes"]


def _name(entry: Entry) -> str:
    return CONTENDERS.get(entry["contender"], (entry["contender"], 0))[0]


def _unit(size: float) -> tuple[str, float]:
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= factor:
            return unit, factor
    return "bytes", 1.0
