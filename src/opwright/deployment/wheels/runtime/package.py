"""Loading a package: its stamp is compared, its library loaded, its operators made."""

from __future__ import annotations

import ctypes
import functools
import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from opwright.deployment.wheels.runtime.dispatcher import register
from opwright.deployment.wheels.runtime.gpus import Gpus
from opwright.deployment.wheels.runtime.packaged import PackagedOperator
from opwright.deployment.wheels.runtime.registered import find_kernel, is_declared
from opwright.deployment.wheels.runtime.stamp import mismatch
from opwright.deployment.wheels.runtime.variant import Variant

LIBRARIES = "lib"


def load(folder: Path, reference: ModuleType) -> tuple[dict[str, PackagedOperator], str | None]:
    """Load the package in a folder; where its kernels cannot be used it says why, once, and references serve.

    Args:
        folder: The package.
        reference: Its module of functions as written.

    Returns:
        The operators by name, and the level of processors whose kernels are loaded; None if none are.
    """
    stamp = json.loads((folder / "stamp.json").read_text(encoding="utf-8"))
    records = json.loads((folder / "operators.json").read_text(encoding="utf-8"))
    taken = _taken(records, folder / LIBRARIES / stamp["library"])
    refusal = mismatch(stamp, folder / LIBRARIES, torch.__version__) or taken
    level = None
    if refusal is None:
        level, refusal = _load_library(folder / LIBRARIES / stamp["library"])
    if refusal is not None:
        warnings.warn(f"{stamp['package']} runs its references: {refusal}", RuntimeWarning, stacklevel=3)
    kernel = functools.cache(functools.partial(find_kernel, stamp["namespace"]))
    gpus = Gpus(stamp["package"], stamp["gpus"], stamp["cuda"])
    operators = {}
    for record in records:
        loaded = [each for each in record["variants"] if level and _is_loaded(each, stamp["namespace"])]
        variants = [Variant.from_record(each, kernel) for each in loaded]
        default = getattr(torch, stamp["default_dtype"])
        operator = PackagedOperator(record["name"], getattr(reference, record["reference"]), variants, gpus, default)
        operators[record["attribute"]] = operator
        if taken is None:
            gradients = record["gradients_schema"] if operator.differentiable else None
            register(operator, record["schema"], gradients, declared=is_declared(record["name"]))
    return operators, level


def _is_loaded(variant: Mapping[str, Any], namespace: str) -> bool:
    """Whether its kernels are there: those for GPUs are not loaded where torch is built without CUDA."""
    return variant["rung"] == "cpp" or is_declared(f"{namespace}::{variant['forward']}")


def _load_library(library: Path) -> tuple[str | None, str | None]:
    """Load it, and with it the kernels; return the level of those for the processor, or why there are none."""
    try:
        torch.ops.load_library(str(library))
    except OSError as error:
        return None, f"its library cannot be loaded: {error}"
    handle = ctypes.CDLL(str(library))
    level, failure = (_text(handle, name) for name in ("opwright_cpu_level", "opwright_load_failure"))
    without_cuda = _text(handle, "opwright_cuda_failure")
    if without_cuda is not None:
        said = f"{library.stem} runs its references on GPUs: {without_cuda}"
        warnings.warn(said, RuntimeWarning, stacklevel=4)
    return level, failure


def _text(handle: ctypes.CDLL, name: str) -> str | None:
    function = getattr(handle, name)
    function.restype = ctypes.c_char_p
    answer = function()
    return None if answer is None else answer.decode()


def _taken(records: Sequence[Mapping[str, Any]], library: Path) -> str | None:
    """Warn if another package has registered operators of these names."""
    if str(library) in torch.ops.loaded_libraries:
        return None
    taken = [record["name"] for record in records if is_declared(record["name"])]
    return f"there is another operator {taken[0]} in this process" if taken else None
