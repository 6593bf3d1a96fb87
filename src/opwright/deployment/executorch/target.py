"""The target "executorch": a sentence."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from opwright.deployment.programs.exported import Exported
from opwright.deployment.programs.target import Checked, Options, Target
from opwright.errors import DeploymentUnsupported, InternalError, ToolMissing
from opwright.settings import Settings

_INSTEAD = 'deploy to "aoti", which runs without Python on the same processors'


def _prepare(options: Options) -> None:
    if find_spec("executorch") is None:
        raise ToolMissing("executorch is not installed", hint=_INSTEAD)
    raise DeploymentUnsupported("there are no programs for executorch yet", hint=_INSTEAD)


def _write(exported: Exported, folder: Path, options: Options) -> dict[str, Any]:
    raise InternalError("a program for executorch was to be written")


def _check(folder: Path, manifest: dict[str, Any], settings: Settings) -> Checked:
    raise InternalError("a program for executorch was to be checked")


EXECUTORCH = Target("executorch", (), _prepare, _write, _check)
