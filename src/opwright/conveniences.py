"""What people ask of an operator besides calling it: methods that leave the work to floors above."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from opwright.binding.rungs import RungName


class Conveniences:
    """Methods that an operator has for its user's convenience; what they need is imported when they are called."""

    def source(self, rung: RungName = "cpp") -> str:
        """Return the source of a rung: what its author wrote, or what is emitted for the first sample.

        Raises:
            SamplesMissing: If the operator has no samples.
            RungMissing: If nothing is emitted for the rung.
        """
        from opwright.explain.source import source_text

        operator: Any = self
        return source_text(operator, rung)

    def explain(self) -> str:
        """Graph, formulas, what is saved and which kernels there are, as text, for the first sample."""
        from opwright.explain.explain import explanation

        operator: Any = self
        return explanation(operator)

    def check(self, **options: Any) -> Any:
        """Judge every rung; see `opwright.checking.check`."""
        from opwright.checking import check

        operator: Any = self
        return check(operator, **options)

    def bench(self, **options: Any) -> Any:
        """Measure every rung; see `opwright.benchmark.bench`."""
        from opwright.benchmark import bench

        operator: Any = self
        return bench(operator, **options)

    def eject(self, directory: str | Path, **options: Any) -> Any:
        """Write a project of its sources that stands without opwright; see `opwright.projects.eject`."""
        from opwright.projects.eject import eject

        operator: Any = self
        return eject(operator, directory, **options)
