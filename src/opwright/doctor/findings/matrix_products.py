"""matrix_products: whether PyTorch multiplies matrices of half types here, which some virtual machines do not survive.

PyTorch's products of bfloat16 choose their instructions by what the processor says that it has. Where the kernel of a
virtual machine does not switch the registers of AMX on, such a product ends the process. So it is tried in another one.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

from opwright.doctor.finding import Finding
from opwright.settings import Settings
from opwright.toolchain.process.own_python import can_start_python, python_command
from opwright.toolchain.process.starting import run

VARIABLE = "ONEDNN_MAX_CPU_ISA"  # read by oneDNN, PyTorch's library for products
WITHOUT_AMX = "AVX512_CORE_FP16"  # the largest set of instructions without it

_ONES = "torch.ones(64, 64, dtype={})"
_PRODUCTS = (
    "import torch; print("
    + ", ".join(
        f"({ones} @ {ones}).float().sum().item()"
        for ones in (_ONES.format(dtype) for dtype in ("torch.float32", "torch.bfloat16", "torch.float16"))
    )
    + ")"
)
_ANSWERS = [64.0**3] * 3
_DEADLINE_S = 120


def matrix_products(settings: Settings) -> Finding:
    """Find whether PyTorch's own products of float32, bfloat16 and float16 work."""
    name = "PyTorch's products"
    if not can_start_python():
        return Finding(name, "limited", "not tried: this process cannot start another Python")
    if are_right():
        return Finding(name, "works", "float32, bfloat16 and float16")
    detail = "those of bfloat16 end the process or are wrong, in PyTorch itself"
    if are_right({VARIABLE: WITHOUT_AMX}):
        return Finding(name, "broken", f"{detail}: AMX does not work here", f"export {VARIABLE}={WITHOUT_AMX}")
    return Finding(name, "broken", detail)


def are_right(environment: Mapping[str, str] | None = None) -> bool:
    """Whether another process, with these variables added to its environment, computes them right."""
    added = f"import os; os.environ.update({dict(environment or {})!r}); "
    try:
        tried = run(python_command(added + _PRODUCTS), _DEADLINE_S)
        return [float(word) for word in tried.stdout.split()] == _ANSWERS
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return False
