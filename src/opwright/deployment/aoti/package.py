"""Exported → model.pt2, which calls the operators of the library."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import torch

from opwright.deployment.library.planned import PlannedLibrary
from opwright.deployment.library.registration import shim_declaration
from opwright.deployment.library.renamed import renamed
from opwright.deployment.programs.exported import Exported
from opwright.errors import DeploymentUnsupported


def write_package(exported: Exported, planned: PlannedLibrary, file: Path, *, direct: bool) -> None:
    """Compile a model ahead of time.

    Args:
        exported: The model.
        planned: The library whose operators it calls.
        file: The package.
        direct: Whether it calls them as functions of C, without the dispatcher.

    Raises:
        DeploymentUnsupported: If AOTInductor compiles no such model.
    """
    with renamed(exported, planned) as (program, overloads):
        configured: dict[str, Any] = {"aot_inductor.metadata": {}}
        if direct:
            shims = {overloads[name]: [shim_declaration(operator)] for name, operator in planned.operators.items()}
            configured["aot_inductor.custom_ops_to_c_shims"] = shims
        try:
            with warnings.catch_warnings(), _quiet():
                warnings.simplefilter("ignore")  # of torch, about itself
                torch._inductor.aoti_compile_and_package(program, package_path=str(file), inductor_configs=configured)
        except Exception as error:
            said = str(error).strip().splitlines()
            raise DeploymentUnsupported(
                f"AOTInductor does not compile the model: {type(error).__name__}: {said[0] if said else ''}",
                hint='deploy it to "torchscript", or leave out what torch.compile cannot compile',
            ) from error


class _quiet:  # noqa: N801 - a context manager
    """Without the log of the compiler."""

    def __enter__(self) -> None:
        self._before = logging.getLogger("torch").level
        logging.getLogger("torch").setLevel(logging.ERROR)

    def __exit__(self, *_: object) -> None:
        logging.getLogger("torch").setLevel(self._before)
