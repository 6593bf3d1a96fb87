"""gpu: the NVIDIA devices and driver of this machine."""

from __future__ import annotations

import re
from pathlib import Path

import torch

from opwright.doctor.finding import Finding
from opwright.settings import Settings

_DRIVER = Path("/proc/driver/nvidia/version")
_NAME = "GPU"


def gpu(settings: Settings) -> Finding:
    """Find the devices that torch can use, and a driver that it does not use."""
    driver = _driver()
    named = f"driver {driver}" if driver else "no NVIDIA driver"
    if torch.cuda.is_available():
        devices = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
        shown = ", ".join(f"{device.name} ({device.major}.{device.minor})" for device in devices)
        return Finding(_NAME, "works", f"{shown}; {named}")
    if driver is None:
        return Finding(_NAME, "limited", "none: kernels run on the CPU")
    if torch.version.cuda is None:
        complaint = f"{named}, but this PyTorch is built without CUDA; pytorch.org says how to install one for CUDA"
        return Finding(_NAME, "limited", complaint)
    return Finding(_NAME, "limited", f"{named}, but PyTorch for CUDA {torch.version.cuda} cannot use it", "nvidia-smi")


def _driver() -> str | None:
    """Return the version of the kernel's driver."""
    try:
        match = re.search(r"Kernel Module\D*([\d.]+)", _DRIVER.read_text(encoding="utf-8"))
    except OSError:
        return None
    return match[1] if match else None
