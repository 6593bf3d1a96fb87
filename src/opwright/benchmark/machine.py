"""Machine: the facts without which a timing means nothing."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import torch

from opwright.errors import OpwrightError
from opwright.settings import Settings
from opwright.toolchain.compiler import find_compiler
from opwright.toolchain.process.cores import available_cores

_CPU_FACTS = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class Machine:
    """Where and when something was measured.

    Attributes:
        cpu: The model of the processor.
        cores: How many of its cores this process may use.
        torch_threads: How many threads PyTorch uses.
        torch: Version of PyTorch.
        python: Version of Python.
        compiler: The C++ compiler and its version; None if there is none.
        accelerator: The model of the accelerator; None if there is none.
        date: When, in UTC.
    """

    cpu: str
    cores: int
    torch_threads: int
    torch: str
    python: str
    compiler: str | None
    accelerator: str | None
    date: str


def this_machine(settings: Settings | None = None) -> Machine:
    """Collect the facts of this machine."""
    settings = settings or Settings.from_environment()
    return Machine(
        cpu=_cpu_model(),
        cores=available_cores(),
        torch_threads=torch.get_num_threads(),
        torch=torch.__version__,
        python=platform.python_version(),
        compiler=_compiler_version(settings),
        accelerator=torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _cpu_model() -> str:
    lines = _CPU_FACTS.read_text().splitlines() if _CPU_FACTS.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _compiler_version(settings: Settings) -> str | None:
    try:
        return find_compiler(settings).version
    except OpwrightError:
        return None
