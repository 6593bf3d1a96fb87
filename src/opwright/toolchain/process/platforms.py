"""The supported platforms; others are refused at import, in one sentence.

This is read by whatever Python there is, so it uses nothing that Python 3.9 does not know.
"""

from __future__ import annotations

import platform
import re
import struct
import sys
import sysconfig
from typing import NamedTuple

_OLDEST_PYTHON = (3, 11)
_OLDEST_TORCH = (2, 11)


class PlatformUnsupported(ImportError):
    """opwright does not support this Python, this PyTorch or this machine."""


class Platform(NamedTuple):
    """The facts of a process.

    Attributes:
        system: The name of the operating system, as `platform.system()` has it.
        python: The version of Python.
        pointer_bits: How wide an address is.
        byte_order: "little" or "big".
        has_gil: Whether Python has its global lock.
        torch: The version of PyTorch.
    """

    system: str
    python: tuple[int, int]
    pointer_bits: int
    byte_order: str
    has_gil: bool
    torch: str


def this_platform(torch_version: str) -> Platform:
    """The platform of this process."""
    return Platform(
        platform.system(),
        (sys.version_info[0], sys.version_info[1]),
        8 * struct.calcsize("P"),
        sys.byteorder,
        not sysconfig.get_config_var("Py_GIL_DISABLED"),
        torch_version,
    )


def refuse_unsupported(found: Platform) -> None:
    """Refuse a platform that opwright does not work on.

    Raises:
        PlatformUnsupported: If so; one sentence says what it needs and what there is.
    """
    for is_supported, needed, there_is in _demands(found):
        if not is_supported:
            raise PlatformUnsupported(f"opwright needs {needed}, and this is {there_is}")


def _demands(found: Platform) -> list[tuple[bool, str, str]]:
    python, oldest, torch = _dotted(found.python), _dotted(_OLDEST_PYTHON), _dotted(_OLDEST_TORCH)
    wsl = "Linux or macOS (on Windows: the Windows Subsystem for Linux)"
    return [
        (found.python >= _OLDEST_PYTHON, f"Python {oldest} or newer", f"Python {python}"),
        (found.system in ("Linux", "Darwin"), wsl, found.system or "an unknown system"),
        (found.pointer_bits == 64, "a 64-bit Python", f"one of {found.pointer_bits} bits"),
        (found.byte_order == "little", "a little-endian processor", f"a {found.byte_order}-endian one"),
        (found.has_gil, "a Python with a global interpreter lock", "a free-threaded build"),
        (_release(found.torch) >= _OLDEST_TORCH, f"PyTorch {torch} or newer", f"PyTorch {found.torch}"),
    ]


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _release(version: str) -> tuple[int, int]:
    numbers = re.findall(r"\d+", version)
    return (int(numbers[0]), int(numbers[1])) if len(numbers) > 1 else (0, 0)
