"""trial_kernel: whether a kernel can be built, loaded and run, end to end."""

from __future__ import annotations

import ctypes

from opwright.doctor.finding import Finding
from opwright.errors import BuildFailed, OpwrightError
from opwright.settings import Settings
from opwright.toolchain.build import build
from opwright.toolchain.source import Source

_ANSWER = 42
_KERNEL = Source(
    "trial",
    '#include "opwright/vmath.h"\n'
    'extern "C" __attribute__((visibility("default"))) int trial() {\n'
    f"  return {_ANSWER};\n"
    "}\n",
)


def trial_kernel(settings: Settings) -> Finding:
    """Build a kernel, or take it from the cache, and call it."""
    name = "a kernel"
    try:
        (library,) = build([_KERNEL], settings)
        answer = ctypes.CDLL(str(library)).trial()
    except BuildFailed as refusal:
        return Finding(name, "broken", f"cannot be built: {refusal.fact}", _command_in(refusal.hint))
    except OpwrightError as refusal:
        return Finding(name, "broken", f"cannot be built: {refusal.fact}")
    except OSError as error:
        return Finding(
            name,
            "broken",
            f"was built, but cannot be loaded: {error}",
            f"mount -o remount,exec {settings.cache_directory}",
        )
    if answer != _ANSWER:
        return Finding(name, "broken", f"was built, but returns {answer} instead of {_ANSWER}")
    return Finding(name, "works", "was built against opwright's headers, loaded and run")


def _command_in(hint: str | None) -> str | None:
    """Return the command that reproduces a failure, taken from its hint."""
    _, _, command = (hint or "").partition(": ")
    return command or None
