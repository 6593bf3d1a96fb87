"""Which GPUs to compile for: "sm_90" is machine code for compute capability 9.0, "compute_90" PTX for it and later."""

from __future__ import annotations

import re
from dataclasses import replace

import torch

from opwright.settings import Settings
from opwright.toolchain.gpu.device_lists import read_architectures, with_ptx

# Without a GPU to look at: the A100, the H100 and the B200, and PTX for what comes after them.
DEFAULT = ("sm_80", "sm_90", "sm_100", "compute_100")


def architectures(settings: Settings) -> tuple[str, ...]:
    """Return what to compile for: what the user lists, or else the GPUs of this machine, or else a default.

    Raises:
        ArchitectureUnknown: A word of the list is no architecture.
    """
    listed = (settings.cuda_architectures or "native").strip() or "native"
    if listed == "native":
        return _present() or DEFAULT
    return tuple(dict.fromkeys(code for architecture in read_architectures(listed) for code in architecture.codes))


def for_others(listed: str, settings: Settings) -> Settings:
    """Settings that compile for the GPUs of others: those of a list, and by PTX all that come after them.

    Args:
        listed: Compute capabilities or generations, as in "8.0 9.0".
        settings: What else is set.

    Raises:
        ArchitectureUnknown: A word of the list is no architecture.
    """
    wanted = with_ptx(read_architectures(listed))
    return replace(settings, cuda_architectures=" ".join(architecture.text for architecture in wanted))


def for_compiler(architecture: str, known: tuple[int, ...]) -> str:
    """What a compiler makes for an architecture: PTX of the newest it knows where it is older than the GPU."""
    wanted = int(re.sub(r"\D", "", architecture))
    older = [version for version in known if version <= wanted]
    return architecture if wanted in known or not older else f"compute_{max(older)}"


def _present() -> tuple[str, ...]:
    if not torch.cuda.is_available():
        return ()
    found = {torch.cuda.get_device_capability(index) for index in range(torch.cuda.device_count())}
    return tuple(f"sm_{major}{minor}" for major, minor in sorted(found))
