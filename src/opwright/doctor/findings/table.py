"""The subjects of the doctor, each after those that it depends on."""

from __future__ import annotations

from collections.abc import Callable

from opwright.doctor.finding import Finding
from opwright.doctor.findings.cache import cache
from opwright.doctor.findings.cpp_compiler import cpp_compiler
from opwright.doctor.findings.cuda_toolkit import cuda_toolkit
from opwright.doctor.findings.gpu import gpu
from opwright.doctor.findings.hot_path import hot_path
from opwright.doctor.findings.leftovers import leftovers
from opwright.doctor.findings.matrix_products import matrix_products
from opwright.doctor.findings.nvrtc import nvrtc
from opwright.doctor.findings.processor import processor
from opwright.doctor.findings.python_headers import python_headers
from opwright.doctor.findings.torch_build import torch_build
from opwright.doctor.findings.torch_extensions import torch_extensions
from opwright.doctor.findings.trial_kernel import trial_kernel
from opwright.settings import Settings

FINDINGS: tuple[Callable[[Settings], Finding], ...] = (
    torch_build,
    processor,
    matrix_products,
    leftovers,
    cache,
    cpp_compiler,
    trial_kernel,
    python_headers,
    hot_path,
    gpu,
    nvrtc,
    cuda_toolkit,
    torch_extensions,
)
