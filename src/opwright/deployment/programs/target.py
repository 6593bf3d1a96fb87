"""A target: a format that models leave Python in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opwright.deployment.programs.exported import Exported
from opwright.settings import Settings

Tell = Callable[[str, int, int], None]  # what is done now, how many steps are done, of how many


@dataclass(frozen=True, slots=True)
class Options:
    """How to write a deployment.

    Attributes:
        operators: "function", "decomposed" or "custom": what operators become in ONNX; None for the target's choice.
        direct: Whether the program calls kernels without the dispatcher.
        settings: Where to build, and with which compiler.
    """

    operators: str | None
    direct: bool
    settings: Settings


@dataclass(frozen=True, slots=True)
class Checked:
    """What running a deployment showed.

    Attributes:
        differences: How much each result differs at most from eager's.
        allowed: How much it may.
        run_us: The median time of a run, in microseconds; None if it was not measured.
    """

    differences: tuple[float, ...]
    allowed: tuple[float, ...]
    run_us: float | None = None

    @property
    def passed(self) -> bool:
        """Whether every difference is allowed; NaN is not."""
        return all(found <= most for found, most in zip(self.differences, self.allowed, strict=True))


@dataclass(frozen=True, slots=True)
class Target:
    """One format: a row of the table in `deployment/targets.py`.

    Attributes:
        name: What users call it.
        takes: The options that it takes besides the settings: names of `Options`.
        prepare: `(options)`: refuses, before anything is exported, what cannot be written or checked here, such as a
            missing tool or package.
        write: `(exported, folder, options)`: writes the files, and returns what `check` needs besides them, as JSON.
            The folder is empty and becomes the deployment if nothing is raised.
        check: `(folder, manifest, settings)`: builds and runs what is in a folder, and compares with eager's results.
            The manifest has "name", "target", "opwright", "torch", "allowed", and what `write` returned.
        keeps_scripts: Whether a model that is TorchScript stays as it is.
    """

    name: str
    takes: tuple[str, ...]
    prepare: Callable[[Options], None]
    write: Callable[[Exported, Path, Options], dict[str, Any]]
    check: Callable[[Path, dict[str, Any], Settings], Checked]
    keeps_scripts: bool = False
