"""Does a written ONNX model hold together, and compute what eager does?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.checker import check_model
from onnx.inliner import inline_local_functions
from onnx.numpy_helper import to_array
from onnx.reference import ReferenceEvaluator
from onnx.shape_inference import infer_shapes

from opwright.deployment.onnx.data_sets import read_data_sets
from opwright.deployment.onnx.running import difference, median_us, open_session, run_session
from opwright.deployment.programs.target import Checked
from opwright.errors import DeploymentFailed
from opwright.settings import Settings


def check(folder: Path, manifest: dict[str, Any], settings: Settings) -> Checked:
    """Check a model: by ONNX's checker, in ONNX Runtime, and in ONNX's reference implementation where that can run it.

    Args:
        folder: Where it is.
        manifest: What `write` returned, among others.
        settings: Unused.

    Raises:
        DeploymentFailed: If the model is not valid, or ONNX Runtime does not run it.
    """
    model = folder / "model.onnx"
    library = manifest["library"]
    try:
        check_model(str(model), full_check=library is None)
    except Exception as error:
        raise DeploymentFailed(
            f"ONNX finds a fault in {model}: {' '.join(str(error).split())[:300]}",
            hint="deploy it again; if that changes nothing, please report it with the model",
        ) from error
    session = open_session(model, library and folder / library)
    evaluator = None if library else _evaluator(model)
    differences: list[float] = []
    allowed: list[float] = []
    sets = list(read_data_sets(folder))
    for (inputs, outputs), most in zip(sets, manifest["allowed_by_set"], strict=True):
        expected = [to_array(each) for each in outputs]
        found = [run_session(session, inputs)]
        given = {each.name: to_array(tensor) for each, tensor in zip(session.get_inputs(), inputs, strict=True)}
        found += _evaluated(evaluator, given)
        for results in found:
            differences += [difference(one, other) for one, other in zip(results, expected, strict=True)]
            allowed += most
    return Checked(tuple(differences), tuple(allowed), median_us(session, sets[0][0]))


def _evaluator(model: Path) -> ReferenceEvaluator | None:
    """ONNX's reference implementation: of a model without functions, with the shapes of all values."""
    try:
        return ReferenceEvaluator(infer_shapes(inline_local_functions(onnx.load(model))))
    except Exception:  # an operation that it does not have
        return None


def _evaluated(
    evaluator: ReferenceEvaluator | None, given: dict[str, np.ndarray[Any, Any]]
) -> list[list[np.ndarray[Any, Any]]]:
    try:
        return [] if evaluator is None else [[np.asarray(each) for each in evaluator.run(None, given)]]
    except Exception:  # NumPy has no bfloat16, and not every operation for every dtype
        return []
