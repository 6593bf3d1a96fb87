"""The class that users meet: an operator with what people ask of one besides calling it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic

import torch
from typing_extensions import ParamSpec, TypeVar

from opwright.benchmark import bench
from opwright.binding.rungs import RungName
from opwright.binding.variants.backends import BACKENDS
from opwright.checking import check
from opwright.errors import DrawingMissing
from opwright.operators.base import BaseOperator
from opwright.report.shown import Page
from opwright.samples import DEFAULT_DTYPES, Progress

if TYPE_CHECKING:
    from opwright.benchmark import BenchReport
    from opwright.benchmark.stopwatch import Plan
    from opwright.checking import Verdict
    from opwright.projects import Ejected
    from opwright.sharding.report import Sharding

Parameters = ParamSpec("Parameters", default=...)
Result = TypeVar("Result", default=Any)


class Operator(BaseOperator, Generic[Parameters, Result]):
    """A PyTorch function with kernels of its own; call it like the function. See `opwright.operator`."""

    _found: Mapping[str, Any] = MappingProxyType({})

    if TYPE_CHECKING:

        def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            """Run the operator; see the reference for arguments, results and errors."""

    def source(self, rung: RungName = "cpp") -> str:
        """Return the source of a rung: handwritten, or emitted for the first sample, or else for the last new call.

        Raises:
            SamplesMissing: If the operator has no samples, and was not called.
            RungMissing: If nothing is emitted for the rung.
        """
        from opwright.explain.source import source_text  # imports sympy, which calls of an operator need not

        return Page(source_text(self, rung), "cpp" if rung in BACKENDS else "python")

    def explain(self) -> str:
        """Graph, formulas, what is saved and which kernels there are, as text.

        For the first sample; for the last call that was new to an operator without samples.
        """
        from opwright.explain.explain import explanation

        return Page(explanation(self))

    def check(
        self,
        *,
        dtypes: Sequence[torch.dtype] = DEFAULT_DTYPES,
        device: str = "cpu",
        only: Sequence[str] = (),
        quick: bool = False,
        progress: Progress | None = None,
        mesh: int | None = None,
    ) -> Verdict:
        """Judge every rung; see `opwright.check`.

        With `mesh`, judge the rules of sharding instead, on a mesh of so many processes on this machine.
        """
        if mesh is not None:
            from opwright.sharding.check import check_on_mesh  # imports torch.distributed.tensor

            return check_on_mesh(self, mesh, dtypes)
        verdict = check(self, dtypes=dtypes, device=device, only=only, quick=quick, progress=progress)
        self._found = {**self._found, "verdict": verdict.to_json()}
        return verdict

    def bench(
        self,
        *,
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
        compile: bool = True,
        plan: Plan | None = None,
        progress: Progress | None = None,
    ) -> BenchReport:
        """Measure every rung; see `opwright.bench`."""
        report = bench(self, dtype=dtype, device=device, compile=compile, plan=plan, progress=progress)
        self._found = {**self._found, "bench": report.to_json()}
        return report

    def _repr_html_(self) -> str | None:
        """What a notebook shows: the operator's page, with what its last `check` and `bench` in this process found.

        Returns:
            An HTML element that loads nothing from elsewhere; None if what draws graphs is not installed, so that the
            notebook shows the operator as text.
        """
        from opwright.page.framed import framed  # imports igraph and matplotlib

        try:
            return framed(self, **self._found)
        except DrawingMissing:
            return None

    def eject(
        self, directory: str | Path, *, dtypes: Sequence[torch.dtype] = DEFAULT_DTYPES, force: bool = False
    ) -> Ejected:
        """Write a project of its sources that does not need opwright; see `opwright.projects.eject`."""
        from opwright.projects import eject

        return eject(self, directory, dtypes=dtypes, force=force)

    def sharding(self, *args: Any, **kwargs: Any) -> Sharding:
        """The rules by which a call runs shard by shard on a mesh, and why there are no more; see `opwright.sharding`.

        Args:
            args: Arguments of a call, as DTensors or as whole tensors; only their shapes, dtypes and placements matter.
            kwargs: Those given by name.
        """
        from opwright.sharding.report import sharding_of  # imports torch.distributed.tensor

        return sharding_of(*self.flattened(args, kwargs))

    def flattened(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[BaseOperator, Sequence[Any]]:
        """The operator of flat arguments that serves a call, and these arguments."""
        return self._flattened(self._signature.bind(args, kwargs))

    def serve_sharded(self, args: Sequence[Any]) -> Any:
        """Serve a call with tensors that are spread over processes; see `opwright.sharding.serving`."""
        from opwright.sharding.serving import serve_sharded

        return serve_sharded(self, args)
