"""The processors that a wheel is built for: kernels for each level, the best that fits is chosen when it is loaded."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass

from opwright.errors import WheelUnsupported


@dataclass(frozen=True, slots=True)
class CpuLevel:
    """A set of instructions that a processor has or has not.

    Attributes:
        name: Its name, also in the names of files.
        flags: The compiler flags that enable it.
        features: All that a processor must have, as compilers' `__builtin_cpu_supports` calls it.
        capability: The least value of torch's own variable ATEN_CPU_CAPABILITY that allows it; "" for every value.
    """

    name: str
    flags: tuple[str, ...]
    features: tuple[str, ...] = ()
    capability: str = ""


# The levels of the x86-64 psABI. For v3 and v4, the tested features are those that ten-year-old compilers know by name;
# every processor with these has the rest (lzcnt, movbe, f16c).
_V2 = ("sse4.2", "ssse3", "popcnt")
_V3 = ("avx2", "fma", "bmi", "bmi2")
_V4 = ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_LEVELS: Mapping[str, tuple[CpuLevel, ...]] = {
    "x86_64": (
        CpuLevel("x86-64-v4", ("-march=x86-64-v4",), (*_V2, *_V3, *_V4), "avx512"),
        CpuLevel("x86-64-v3", ("-march=x86-64-v3",), (*_V2, *_V3), "avx2"),
        CpuLevel("x86-64-v2", ("-march=x86-64-v2",), _V2),
    ),
    "aarch64": (CpuLevel("armv8-a", ("-march=armv8-a",)),),
}


def cpu_levels(machine: str = platform.machine()) -> tuple[CpuLevel, ...]:
    """Return the levels for an architecture, the best first.

    Raises:
        WheelUnsupported: If there are none for it.
    """
    if machine not in _LEVELS:
        raise WheelUnsupported(f"wheels are built for {' and '.join(_LEVELS)}, and this machine is {machine}")
    return _LEVELS[machine]
