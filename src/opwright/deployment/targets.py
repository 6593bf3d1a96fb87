"""The formats that models leave Python in, one row each."""

from __future__ import annotations

from collections.abc import Mapping

from opwright.deployment.executorch.target import EXECUTORCH
from opwright.deployment.onnx.target import ONNX
from opwright.deployment.programs.target import Target

TARGETS: Mapping[str, Target] = {target.name: target for target in (ONNX, EXECUTORCH)}
