"""The target "executorch": a program for devices, where that package is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from opwright.deployment.programs.exported import Exported
from opwright.deployment.programs.target import Checked, Options, Target
from opwright.errors import ToolMissing
from opwright.settings import Settings

_INSTEAD = 'pip install executorch, or deploy to "aoti", which runs without Python on the same processors'


def _prepare(options: Options) -> None:
    if find_spec("executorch") is None:
        raise ToolMissing("executorch is not installed", hint=_INSTEAD)


def _write(exported: Exported, folder: Path, options: Options) -> dict[str, Any]:
    from opwright.deployment.executorch.program import write_program  # needs a package that users may not have

    write_program(exported, folder)
    return {}


def _check(folder: Path, manifest: dict[str, Any], settings: Settings) -> Checked:
    _prepare(Options(None, False, settings))
    from opwright.deployment.executorch.program import run_program

    found, expected = run_program(folder)
    pairs = zip(found, expected, strict=True)
    differences = tuple(_difference(one, other) for one, other in pairs)
    return Checked(differences, tuple(manifest["allowed"]))


def _difference(found: Any, expected: Any) -> float:
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return float("inf")
    differing = (found != expected) & ~(found.isnan() & expected.isnan())
    apart = (found.double() - expected.double()).abs()[differing]
    return float(apart.max()) if apart.numel() else 0.0


EXECUTORCH = Target("executorch", (), _prepare, _write, _check)
