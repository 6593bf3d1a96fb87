"""ExportedProgram → ONNX, by torch's exporter, without what it prints."""

from __future__ import annotations

import contextlib
import io
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule

from opwright.errors import DeploymentUnsupported

_LOGGER = "torch.onnx"


def to_onnx(program: ExportedProgram, translations: Mapping[Any, Callable[..., Any]], opset: int | None) -> Any:
    """Convert a program.

    Args:
        program: The program.
        translations: What makes ONNX nodes of operations that are not torch's, by overload.
        opset: The version of ONNX's own operators; None for the exporter's choice.

    Returns:
        The model: an `onnx_ir.Model`.

    Raises:
        DeploymentUnsupported: If ONNX has no operations for it.
    """
    try:
        with _quiet():
            made = torch.onnx.export(
                _without_backward(program),
                dynamo=True,
                verbose=False,
                opset_version=opset,
                custom_translation_table=dict(translations),
            )
    except Exception as error:
        raise DeploymentUnsupported(
            f"torch.onnx has no ONNX operations for it: {_said(error)}",
            hint="write that part with other operations of PyTorch, or deploy to another target",
        ) from error
    assert made is not None
    return made.model


def _without_backward(program: ExportedProgram) -> ExportedProgram:
    """The program with derivatives such as `silu_backward`, which ONNX has no operations for, in simpler ones."""
    graphs = [module.graph for module in program.graph_module.modules() if isinstance(module, GraphModule)]
    if not any("_backward" in str(node.target) for graph in graphs for node in graph.nodes):
        return program
    table = torch.export.default_decompositions()
    simpler: ExportedProgram = program.run_decompositions({e: table[e] for e in table if "_backward" in str(e)})
    return simpler


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep torch from talking about itself: progress on stdout, packages that are missing, deprecations."""
    logger = logging.getLogger(_LOGGER)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _said(error: BaseException) -> str:
    """The innermost reason, on one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip().split("\n\n")[0]
    return f"{type(error).__name__}: {' '.join(text.split())[:300]}"
