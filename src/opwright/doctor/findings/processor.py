"""processor: the instructions that kernels are compiled for, and how many compilers may run at once."""

from __future__ import annotations

import platform

import torch

from opwright.doctor.finding import Finding
from opwright.extensions.memory import available_bytes, jobs_at_once
from opwright.settings import Settings
from opwright.toolchain.process.cores import available_cores

_MEMORY_OF_A_SOURCE_BYTES = 2 << 30


def processor(settings: Settings) -> Finding:
    """Find the instruction set, the cores, and the memory for compilers."""
    cores = available_cores()
    memory = available_bytes()
    jobs = jobs_at_once(settings, _MEMORY_OF_A_SOURCE_BYTES)
    facts = [
        f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}",
        f"{cores} cores, {torch.get_num_threads()} torch threads",
        *([f"{memory / 2**30:.1f} GiB of memory free"] if memory is not None else []),
        f"{jobs} sources of opwright.load compile at a time" + (" (MAX_JOBS)" if settings.job_limit else ""),
    ]
    if memory is not None and memory < _MEMORY_OF_A_SOURCE_BYTES:
        return Finding("processor", "limited", "; ".join(facts) + "; torch/extension.h alone takes 1.5 GB")
    return Finding("processor", "works", "; ".join(facts))
