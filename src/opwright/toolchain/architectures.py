"""Which GPUs to compile for: "sm_90" is machine code for compute capability 9.0, "compute_90" PTX for it and later."""

from __future__ import annotations

import re

import torch

from opwright.errors import ArchitecturesUnreadable
from opwright.settings import Settings

# Without a GPU to look at: the A100, the H100 and the B200, and PTX for what comes after them.
DEFAULT = ("sm_80", "sm_90", "sm_100", "compute_100")


def architectures(settings: Settings) -> tuple[str, ...]:
    """Return what to compile for: what the user lists, or else the GPUs of this machine, or else a default.

    Raises:
        ArchitecturesUnreadable: The list cannot be read.
    """
    if settings.cuda_architectures and settings.cuda_architectures.strip():
        return parse(settings.cuda_architectures)
    return _present() or DEFAULT


def parse(text: str) -> tuple[str, ...]:
    """Read a list as torch's own extensions do: "8.0;9.0+PTX" is ("sm_80", "sm_90", "compute_90").

    Raises:
        ArchitecturesUnreadable: An entry is no compute capability.
    """
    found: list[str] = []
    for entry in re.split(r"[;\s,]+", text.strip(";, \t\n")):
        match = re.fullmatch(r"(\d+)\.(\d)([af]?)(\+PTX)?", entry)
        if match is None:
            raise ArchitecturesUnreadable(
                f"'{entry}' in the list of GPUs '{text}' is no compute capability",
                hint="write TORCH_CUDA_ARCH_LIST='8.0;9.0+PTX', numbers with '+PTX' where later GPUs should be served",
            )
        version = match[1] + match[2] + match[3]
        found += [f"sm_{version}", *([f"compute_{version}"] if match[4] else [])]
    return tuple(dict.fromkeys(found))


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
