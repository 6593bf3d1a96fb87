"""Settings: a frozen value that is passed down. The environment is read here and nowhere else."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

TapePolicy = Literal["background", "now", "off"]
_TAPE_POLICIES: dict[str, TapePolicy] = {"now": "now", "off": "off"}

DEFAULT_PATIENCE_S = 30.0
DEFAULT_CACHE_LIMIT_BYTES = 5_000_000_000
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt])?(i)?b?")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user can set.

    Attributes:
        cache_directory: Where built libraries and the records of derived variants are kept.
        compiler: The C++ compiler to use instead of the one that is found; None to look for one.
        color: Whether terminal output may be coloured.
        notify: Whether to warn if the reference serves a call, and to log that a build is running.
        strict: Whether it is an error that a call is served by the reference where kernels are expected.
        tape: When to build the hot path in C++: beside the first calls, before the first of them, or never.
        cuda_home: The CUDA toolkit to use instead of the one that is found; None to look for one.
        cuda_architectures: For which devices to compile CUDA sources, as in "8.0 9.0+PTX"; None for those here.
        job_limit: How many compilers may run at a time on a user's own sources; None to go by cores and memory.
        torch_extensions: Where `torch.utils.cpp_extension` builds, which the doctor looks at.
        cuda_compiler: The nvcc to compile CUDA kernels with; None for NVRTC.
        cuda_on_host: Whether CPU tensors are served by CUDA kernels that run on the processor: slowly, to check them.
        patience_s: How long a call may take before the reference serves it while compilers go on; None waits for them.
        cache_limit_bytes: The size limit of the cache; least recently used entries are removed first. None for no
            limit.
    """

    cache_directory: Path
    compiler: str | None = None
    color: bool = True
    notify: bool = True
    strict: bool = False
    tape: TapePolicy = "background"
    cuda_home: Path | None = None
    cuda_architectures: str | None = None
    cuda_compiler: str | None = None
    cuda_on_host: bool = False
    job_limit: int | None = None
    torch_extensions: Path | None = None
    patience_s: float | None = None
    cache_limit_bytes: int | None = DEFAULT_CACHE_LIMIT_BYTES

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Read the variables OPWRIGHT_* and those that other tools know too.

        OPWRIGHT_CACHE, OPWRIGHT_CACHE_LIMIT, XDG_CACHE_HOME, OPWRIGHT_QUIET, OPWRIGHT_STRICT, OPWRIGHT_TAPE,
        OPWRIGHT_PATIENCE, OPWRIGHT_CUDA_ON_HOST, CXX, CUDACXX and NO_COLOR; also what `torch.utils.cpp_extension`
        reads: CUDA_HOME or CUDA_PATH, TORCH_CUDA_ARCH_LIST, MAX_JOBS and TORCH_EXTENSIONS_DIR.
        """
        cuda_home = environment.get("CUDA_HOME") or environment.get("CUDA_PATH")
        job_limit = environment.get("MAX_JOBS", "")
        return cls(
            cache_directory=_folder(environment, "OPWRIGHT_CACHE", "opwright"),
            cache_limit_bytes=_cache_limit(environment.get("OPWRIGHT_CACHE_LIMIT", "")),
            compiler=environment.get("CXX") or None,
            color="NO_COLOR" not in environment,
            notify=not environment.get("OPWRIGHT_QUIET"),
            strict=environment.get("OPWRIGHT_STRICT", "") not in ("", "0"),
            patience_s=_patience(environment.get("OPWRIGHT_PATIENCE", "")),
            tape=_TAPE_POLICIES.get(environment.get("OPWRIGHT_TAPE", ""), "background"),
            cuda_home=Path(cuda_home) if cuda_home else None,
            cuda_architectures=environment.get("TORCH_CUDA_ARCH_LIST") or None,
            cuda_compiler=environment.get("CUDACXX") or None,
            cuda_on_host=bool(environment.get("OPWRIGHT_CUDA_ON_HOST")),
            job_limit=int(job_limit) if job_limit.isdigit() and int(job_limit) else None,
            torch_extensions=_folder(environment, "TORCH_EXTENSIONS_DIR", "torch_extensions"),
        )


def _folder(environment: Mapping[str, str], chosen_by: str, name: str) -> Path:
    """The folder that a variable names, or else one in the user's cache."""
    chosen = environment.get(chosen_by)
    return Path(chosen) if chosen else _user_cache(environment) / name


def _user_cache(environment: Mapping[str, str]) -> Path:
    base = environment.get("XDG_CACHE_HOME")
    return Path(base) if base else Path.home() / ".cache"


def _patience(text: str) -> float | None:
    """Seconds; None for "unlimited"; the usual patience for what is no number."""
    if text.strip().lower() in ("unlimited", "none"):
        return None
    try:
        seconds = float(text)
    except ValueError:
        return DEFAULT_PATIENCE_S
    return seconds if 0 <= seconds < math.inf else DEFAULT_PATIENCE_S if seconds != math.inf else None


def _cache_limit(text: str) -> int | None:
    if text.strip().lower() == "none":
        return None
    limit_bytes = bytes_of(text)
    return DEFAULT_CACHE_LIMIT_BYTES if limit_bytes is None else limit_bytes


def bytes_of(text: str) -> int | None:
    """Read a size such as "500 MB", "5G" or "1.5 GiB"; None if it is none."""
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None:
        return None
    number, unit, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** " kmgt".index(unit or " "))


def variable(name: str) -> str | None:
    """The value of an environment variable that a user's function reads; None if it is not set."""
    return os.environ.get(name)


def reads_environment(value: object) -> bool:
    """Whether something is what Python reads the environment by."""
    return value is os.environ or value is os.getenv


def keep_to_this_machine() -> None:
    """Make the process groups of this process talk to this machine alone; call it before any is made."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
