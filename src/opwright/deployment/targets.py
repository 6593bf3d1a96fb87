"""The formats that models leave Python in, one row each."""

from __future__ import annotations

from collections.abc import Mapping

from opwright.deployment.aoti.target import AOTI
from opwright.deployment.executorch.target import EXECUTORCH
from opwright.deployment.onnx.target import ONNX
from opwright.deployment.programs.target import Target
from opwright.deployment.torchscript.target import TORCHSCRIPT

TARGETS: Mapping[str, Target] = {target.name: target for target in (AOTI, TORCHSCRIPT, ONNX, EXECUTORCH)}
