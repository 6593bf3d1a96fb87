"""opwright: one PyTorch function in, a finished operator out."""

# ruff: noqa: E402  (PyTorch may end the process where it is imported in a subinterpreter)

from opwright.toolchain.process.interpreter import refuse_subinterpreters

refuse_subinterpreters()

from typing import TYPE_CHECKING, Any

from torch import __version__ as _torch_version

from opwright.toolchain.process.platforms import refuse_unsupported, this_platform

refuse_unsupported(this_platform(_torch_version))  # before anything else of opwright is imported

from opwright import func, optim, tensors
from opwright.api.decorator import operator
from opwright.api.operator import Operator
from opwright.auditing import audit
from opwright.benchmark import bench
from opwright.binding.dispatcher.opaque import opaque
from opwright.checking import check
from opwright.deployment import build_wheel, deploy
from opwright.errors import FallbackWarning
from opwright.extensions import load, load_inline
from opwright.nn import module
from opwright.optim.decorator import optimizer
from opwright.samples import Sample, shapes
from opwright.version import VERSION

if TYPE_CHECKING:
    from opwright import library

__all__ = [
    "FallbackWarning",
    "Operator",
    "Sample",
    "audit",
    "bench",
    "build_wheel",
    "check",
    "deploy",
    "func",
    "library",
    "load",
    "load_inline",
    "module",
    "opaque",
    "operator",
    "optim",
    "optimizer",
    "shapes",
    "tensors",
]
__version__ = VERSION


def __getattr__(name: str) -> Any:
    """Load the ready operators where they are first asked for."""
    if name == "library":
        from importlib import import_module

        return import_module("opwright.library")
    raise AttributeError(f"module 'opwright' has no attribute {name!r}")
