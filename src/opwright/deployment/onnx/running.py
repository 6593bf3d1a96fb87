"""Running an ONNX model, and how far its results are from those of eager."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx.numpy_helper import to_array

from opwright.errors import DeploymentFailed

_RUNS = 20


def open_session(model: Path, library: Path | None) -> Any:
    """Load a model into ONNX Runtime.

    Args:
        model: The file.
        library: Custom operators.

    Raises:
        DeploymentFailed: If ONNX Runtime refuses it.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    try:
        if library is not None:
            options.register_custom_ops_library(str(library))
        return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise _failed("does not load it", error) from error


def run_session(session: Any, inputs: Sequence[onnx.TensorProto]) -> list[np.ndarray[Any, Any]]:
    """Run a model.

    Raises:
        DeploymentFailed: If it fails.
    """
    names = [each.name for each in session.get_inputs()]
    try:
        given = {name: _ort_value(tensor) for name, tensor in zip(names, inputs, strict=True)}
        results = session.run_with_ort_values(None, given)
        return [to_array(tensor) if isinstance(tensor, onnx.TensorProto) else _array(tensor) for tensor in results]
    except Exception as error:
        raise _failed("does not run it", error) from error


def median_us(session: Any, inputs: Sequence[onnx.TensorProto]) -> float:
    """The median time of a run, in microseconds."""
    given = {each.name: _ort_value(t) for each, t in zip(session.get_inputs(), inputs, strict=True)}
    times = []
    for _ in range(_RUNS):
        begin = time.perf_counter()
        session.run_with_ort_values(None, given)
        times.append(1e6 * (time.perf_counter() - begin))
    return statistics.median(times)


def difference(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> float:
    """The largest distance between two results; infinite if they differ in kind, or in where they are not finite."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return float("inf")
    wide = np.complex128 if np.iscomplexobj(found) else np.float64
    one, other = found.astype(wide), expected.astype(wide)
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    if same.all():
        return 0.0
    if not np.isfinite(one[~same]).all() or not np.isfinite(other[~same]).all():
        return float("inf")
    return float(np.abs(one[~same] - other[~same]).max())


def _ort_value(tensor: onnx.TensorProto) -> Any:
    array = np.ascontiguousarray(to_array(tensor)).reshape(tuple(tensor.dims))
    if tensor.data_type == onnx.TensorProto.BFLOAT16:  # NumPy has none; ONNX Runtime takes its bits
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(np.uint16), tensor.data_type)
    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


def _array(value: Any) -> np.ndarray[Any, Any]:
    if value.data_type() != "tensor(bfloat16)":
        return np.asarray(value.numpy())
    import ml_dtypes  # comes with onnx

    bits = np.ctypeslib.as_array((ctypes.c_uint16 * int(np.prod(value.shape()))).from_address(value.data_ptr()))
    return bits.copy().reshape(value.shape()).view(ml_dtypes.bfloat16)


def _failed(what: str, error: Exception) -> DeploymentFailed:
    said = " ".join(str(error).split())[:300]
    return DeploymentFailed(
        f"ONNX Runtime {onnxruntime.__version__} {what}: {said}",
        hint="a newer onnxruntime may have the operation for this dtype; so may another form: operators=",
    )
