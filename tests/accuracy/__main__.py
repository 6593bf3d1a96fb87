"""Measure all functions and write the page: python -m tests.accuracy docs/accuracy.md [--quick].

Kernels are built as users build them; with --quick they are built without optimization, in a fifth of the time.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from opwright.settings import Settings
from opwright.toolchain.compiler import find_compiler
from tests.accuracy.comparison import Figures
from tests.accuracy.measure import THOROUGHLY, chunks, measure_samples, operator_of
from tests.accuracy.subject import Subject
from tests.accuracy.tables import EXCEPTIONS, FAMILIES
from tests.quick_compiler import OPTIMIZING_NOTHING, quick_compiler

DTYPES = (torch.float32, torch.bfloat16)
_INTRODUCTION = """# Accuracy

An operator promises, against the same function in float64, **at most twice eager's root mean square error and three
times its worst error, or 4 ulp of every element**, for values and for the gradient of every argument. This page is the
output of `python -m tests.accuracy docs/accuracy.md{options}`; half types are first converted to float64, exactly.

Machine: {machine}. Versions: torch {torch}, Python {python}, {compiler}.

Each cell is the largest ratio of our rms error to eager's over several ranges of inputs (around zero, up to ±80,
down to 10⁻⁸, near the points where functions change, sorted, around 1000). It covers {few} samples of 64 rows of
128 elements, or {many} where {few} are outside of the promise. Below 1, the operator is more accurate than eager.
"≤ 4 ulp" means that the ratio is above 2, but every element is within 4 ulp. **Bold** cells are outside of the
promise; their causes are at the end of the page. Ratios up to 2.3 are within the noise of so many samples, and the
tests allow them.
"""


@dataclass
class Cell:
    """The worst of several figures."""

    ratio: float = 0.0
    is_near: bool = False
    is_outside: bool = False

    def see(self, figures: Figures) -> None:
        """Include another figure."""
        if figures.are_kept() and figures.rms_ratio > 2:
            self.is_near = True
            return
        self.is_outside |= not figures.are_kept()
        self.ratio = max(self.ratio, figures.rms_ratio)

    def __str__(self) -> str:
        if self.is_outside:
            return f"**{self.ratio:.2f}**"
        return "≤ 4 ulp" if self.is_near else f"{self.ratio:.2f}"


@dataclass
class Line:
    """A function's cells, one for values and one for gradients in each dtype."""

    cells: dict[tuple[torch.dtype, bool], Cell] = field(default_factory=dict)

    def __str__(self) -> str:
        kinds = [(dtype, is_value) for dtype in DTYPES for is_value in (True, False)]
        return " | ".join(str(self.cells.get(kind, "")) for kind in kinds)


def measure_family(subjects: Mapping[str, Subject], settings: Settings) -> dict[str, Line]:
    """Measure every function of a family in every dtype and range."""
    lines = {name: Line() for name in subjects}
    for dtype in DTYPES:
        for some in chunks(subjects, dtype):
            operator = operator_of(list(some.values()), settings)
            for range_name in dict.fromkeys(name for subject in some.values() for name in subject.ranges):
                for name, what, figures in measure_samples(operator, some, dtype, range_name):
                    lines[name].cells.setdefault((dtype, what == "value"), Cell()).see(figures)
    return lines


def page(families: Mapping[str, Mapping[str, Line]], compiler: str, options: str) -> str:
    """Write the page."""
    machine = f"{_processor()}, {platform.system()}"
    versions = {"torch": torch.__version__, "python": platform.python_version(), "compiler": compiler}
    facts = {"machine": machine, "options": options, "few": THOROUGHLY[1], "many": THOROUGHLY[-1], **versions}
    return "\n".join([_INTRODUCTION.format(**facts), *_tables(families), *_outside()])


def _tables(families: Mapping[str, Mapping[str, Line]]) -> Iterable[str]:
    for family, lines in families.items():
        yield f"## {family.capitalize()}\n"
        yield "| function | float32: values | gradients | bfloat16: values | gradients |"
        yield "|---|---|---|---|---|"
        yield from (f"| {name} | {line} |" for name, line in lines.items())
        yield ""


def _outside() -> Iterable[str]:
    yield "## Outside of the promise\n"
    for (name, dtype, what), cause in EXCEPTIONS.items():
        yield f"- **{name}**, {what} in {str(dtype).removeprefix('torch.')}: {cause}."
    yield ""


def _processor() -> str:
    described = Path("/proc/cpuinfo")
    lines = described.read_text().splitlines() if described.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine()) + f" with {torch.backends.cpu.get_cpu_capability()}"


def main() -> None:
    """Measure, and write the page to the path given."""
    path, *options = sys.argv[1:]
    settings = replace(Settings.from_environment(), notify=False, tape="off")
    if options == ["--quick"]:
        settings = replace(settings, compiler=quick_compiler(OPTIMIZING_NOTHING))
    compiler = find_compiler(settings).version
    families = {family: measure_family(subjects, settings) for family, subjects in FAMILIES.items()}
    Path(path).write_text(page(families, compiler, "".join(f" {option}" for option in options)))


if __name__ == "__main__":
    main()
