"""Exported → a program of ExecuTorch, and what running it shows.

Operators become the operations of their functions: ExecuTorch has tensors of its own, which the emitted kernels do not
take. So there is no library.
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from opwright.deployment.programs.exported import Exported, OperatorCall
from opwright.errors import DeploymentFailed, DeploymentUnsupported, ToolMissing

MODEL = "model.pte"


def write_program(exported: Exported, folder: Path) -> None:
    """Write `model.pte`, and the example: `inputs.pt` and `expected.pt`.

    Raises:
        DeploymentUnsupported: If ExecuTorch does not take what the model does.
        ToolMissing: If it cannot be imported.
    """
    to_edge = _imported("executorch.exir").to_edge
    decompositions: dict[Any, Callable[..., Any]] = {call.node.target: _reference(call) for call in exported.calls}
    try:
        with _quiet():
            program = exported.program.run_decompositions(torch.export.default_decompositions() | decompositions)
            made = to_edge(program).to_executorch()
    except Exception as error:
        raise DeploymentUnsupported(
            f"executorch does not take the model: {' '.join(str(error).split())[:300]}",
            hint='write that part with other operations of PyTorch, or deploy to "aoti"',
        ) from error
    (folder / MODEL).write_bytes(made.buffer)
    torch.save(list(exported.inputs), folder / "inputs.pt")
    torch.save(list(exported.expected), folder / "expected.pt")


def _imported(module: str) -> Any:
    """A module of the package, which warns of itself while it is imported.

    Raises:
        ToolMissing: If it cannot be imported here.
    """
    try:
        with _quiet():
            return import_module(module)
    except ImportError as error:
        fact = f"executorch is installed, and cannot be imported: {' '.join(str(error).split())[:300]}"
        raise ToolMissing(fact, hint="install the versions of its packages that it asks for") from error


def _reference(call: OperatorCall) -> Callable[..., Any]:
    """The operator's function, of arguments as its overload takes them."""

    def composed(*args: Any, **kwargs: Any) -> Any:
        return call.signature.positional(call.operator.reference)(*call.signature.bind(args, kwargs))

    return composed


def run_program(folder: Path) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Run the example in ExecuTorch's portable kernels; return what comes out, and what eager returned.

    Raises:
        DeploymentFailed: If ExecuTorch does not run it.
        ToolMissing: If it cannot be imported.
    """
    runtime = _imported("executorch.runtime").Runtime
    inputs, expected = (torch.load(folder / name, weights_only=True) for name in ("inputs.pt", "expected.pt"))
    try:
        with _quiet():
            found = runtime.get().load_program(str(folder / MODEL)).load_method("forward").execute(inputs)
    except Exception as error:
        raise DeploymentFailed(
            f"executorch does not run {folder / MODEL}: {' '.join(str(error).split())[:300]}",
            hint='its portable kernels may lack an operation or a dtype; deploy to "aoti"',
        ) from error
    return [each.clone() for each in found], expected


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep its logs, some of which C++ writes, from stdout and stderr."""
    logging.disable(logging.WARNING)
    with tempfile.TemporaryFile() as said, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept = [(number, os.dup(number)) for number in (1, 2)]
        try:
            for number, _ in kept:
                os.dup2(said.fileno(), number)
            yield
        finally:
            for number, copy in kept:
                os.dup2(copy, number)
                os.close(copy)
            logging.disable(logging.NOTSET)
