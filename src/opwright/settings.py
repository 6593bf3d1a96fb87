"""Settings: a frozen value that is passed down. The environment is read here and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

TapePolicy = Literal["background", "now", "off"]
_TAPE_POLICIES: dict[str, TapePolicy] = {"now": "now", "off": "off"}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user can set.

    Attributes:
        cache_directory: Where built libraries and the records of derived variants are kept.
        compiler: The C++ compiler to use instead of the one that is found; None to look for one.
        color: Whether terminal output may be coloured.
        notify: Whether to say on stderr that a call is served by the reference, and that a build is under way.
        tape: When to build the hot path in C++: beside the first calls, before the first of them, or never.
        cuda_home: A CUDA toolkit to look in for what no wheel brings; None to look in the usual places.
    """

    cache_directory: Path
    compiler: str | None = None
    color: bool = True
    notify: bool = True
    tape: TapePolicy = "background"
    cuda_home: Path | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Read OPWRIGHT_CACHE, XDG_CACHE_HOME, OPWRIGHT_QUIET, OPWRIGHT_TAPE, CXX, CUDA_HOME and NO_COLOR."""
        return cls(
            cache_directory=_cache_directory(environment),
            compiler=environment.get("CXX") or None,
            color="NO_COLOR" not in environment,
            notify=not environment.get("OPWRIGHT_QUIET"),
            tape=_TAPE_POLICIES.get(environment.get("OPWRIGHT_TAPE", ""), "background"),
            cuda_home=Path(environment["CUDA_HOME"]) if environment.get("CUDA_HOME") else None,
        )


def _cache_directory(environment: Mapping[str, str]) -> Path:
    if chosen := environment.get("OPWRIGHT_CACHE"):
        return Path(chosen)
    base = environment.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "opwright"
