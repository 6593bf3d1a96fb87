"""Which GPUs the kernels of a package are for; asked when a tensor on one of them comes for the first time."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Sequence

import torch


class Gpus:
    """The GPUs of this process.

    Args:
        package: What Python imports.
        targets: What its kernels are compiled for: "sm_90" is machine code, "compute_90" PTX; empty if there are none.
        cuda: The version of CUDA that compiled them; None if it is not known.
    """

    def __init__(self, package: str, targets: Sequence[str], cuda: Sequence[int] | None) -> None:
        self._package, self._targets, self._cuda = package, targets, cuda
        self._served: dict[int, bool] = {}

    def serve(self, index: int) -> bool:
        """Whether kernels run on a GPU; where they do not, it is said once."""
        if index not in self._served:
            refusal = self._refusal(index) if self._targets else ""
            if refusal:
                said = f"{self._package} runs its references on cuda:{index}: {refusal}"
                warnings.warn(said, RuntimeWarning, stacklevel=2)
            self._served[index] = refusal is None
        return self._served[index]

    def _refusal(self, index: int) -> str | None:
        major, minor = torch.cuda.get_device_capability(index)
        return gpu_mismatch(self._targets, self._cuda, 10 * major + minor, _version_of_driver())


def gpu_mismatch(
    targets: Sequence[str], cuda: Sequence[int] | None, capability: int, driver: tuple[int, int]
) -> str | None:
    """Say in one sentence why kernels cannot run on a GPU; None if they can.

    Machine code is for GPUs of its own major version, of its minor version or a later one, and for drivers of CUDA's
    major version; PTX is for later GPUs too, and for drivers that are no older than the compiler.

    Args:
        targets: What they are compiled for.
        cuda: The version of CUDA that compiled them; None if it is not known.
        capability: Of the GPU: 90 for 9.0.
        driver: The version of CUDA that its driver is for.
    """
    older = [target for target in targets if _number(target) <= capability]
    machine_code = [t for t in older if t.startswith("sm_") and _number(t) // 10 == capability // 10]
    if not machine_code and not any(target.startswith("compute_") for target in older):
        return f"its kernels are for {', '.join(targets)}, and this GPU is of compute capability {capability / 10}"
    needed = () if cuda is None else (cuda[0],) if machine_code else tuple(cuda)
    if driver < needed:
        version = ".".join(map(str, needed))
        return f"its kernels need a driver for CUDA {version} or newer, and this one is for {driver[0]}.{driver[1]}"
    return None


def _number(target: str) -> int:
    return int("".join(filter(str.isdigit, target)))


def _version_of_driver() -> tuple[int, int]:
    version = ctypes.c_int()
    ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    return version.value // 1000, version.value % 1000 // 10
