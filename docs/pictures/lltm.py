"""Draw the README's picture from the table in benchmarks/README.md: `python docs/pictures/lltm.py` writes lltm.svg."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
TITLE = "### LLTM cell, forward and backward"
CONTENDERS = ("opwright", "eager", "torch.compile")
COLOURS = ("#2563eb", "#9ca3af", "#f59e0b")
INK = "#768390"  # is read on white and on black


def rows() -> list[tuple[str, list[float]]]:
    """The sizes, and the times of the three in µs."""
    page = (HERE.parents[1] / "benchmarks" / "README.md").read_text(encoding="utf-8")
    section = page.partition(TITLE)[2].partition("\n### ")[0]
    found = re.findall(r"^\| (\d+ × \d+) \| ([\d.,]+) \| ([\d.,]+) \| ([\d.,]+) \|", section, re.MULTILINE)
    return [(size, [float(each.replace(",", "")) for each in times]) for size, *times in found]


def main() -> None:
    """Bars of time over that of opwright; above them, the times."""
    table = rows()
    figure, axis = plt.subplots(figsize=(8, 2.9), layout="constrained")
    for place, (name, colour) in enumerate(zip(CONTENDERS, COLOURS, strict=True)):
        positions = [index + 0.27 * (place - 1) for index in range(len(table))]
        heights = [times[place] / times[0] for _, times in table]
        axis.bar(positions, heights, width=0.25, color=colour, label=name)
        for x, height, (_, times) in zip(positions, heights, table, strict=True):
            axis.text(x, height + 0.06, told(times[place]), ha="center", fontsize=7.5, color=INK)
    axis.set_xticks(range(len(table)), [size for size, _ in table])
    axis.set(
        xlabel="batch × state", ylabel="time, opwright = 1", title="LLTM cell, forward and backward: lower is better"
    )
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, ncols=3, loc="upper right", fontsize=9)
    axis.set_ylim(0, 6)
    figure.savefig(HERE / "lltm.svg", metadata={"Date": None}, transparent=True)


def told(time_us: float) -> str:
    """A time with its unit."""
    return f"{time_us:.0f} µs" if time_us < 1000 else f"{time_us / 1000:.1f} ms"


if __name__ == "__main__":
    plt.rcParams["svg.hashsalt"] = "opwright"
    for part in ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"):
        plt.rcParams[part] = INK
    main()
