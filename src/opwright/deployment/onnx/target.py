"""The target "onnx": its row of the table of formats."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from opwright.deployment.programs.exported import Exported
from opwright.deployment.programs.target import Checked, Options, Target
from opwright.errors import DeploymentUnsupported, ToolMissing
from opwright.settings import Settings

FORMS = ("function", "decomposed", "custom")
_PACKAGES = ("onnx", "onnxscript", "onnxruntime")


def _prepare(options: Options) -> None:
    for package in _PACKAGES:
        if find_spec(package) is None:
            raise ToolMissing(f"{package} is not installed", hint="pip install 'opwright[onnx]'")
    if options.operators not in (None, *FORMS):
        raise DeploymentUnsupported(
            f"operators= is {options.operators!r}", hint=f"choose from {', '.join(map(repr, FORMS))}"
        )


def _write(exported: Exported, folder: Path, options: Options) -> dict[str, Any]:
    from opwright.deployment.onnx.writing import write  # needs packages that users may not have

    return write(exported, folder, options)


def _check(folder: Path, manifest: dict[str, Any], settings: Settings) -> Checked:
    _prepare(Options(None, False, settings))
    from opwright.deployment.onnx.checking import check

    return check(folder, manifest, settings)


ONNX = Target("onnx", ("operators",), _prepare, _write, _check)
