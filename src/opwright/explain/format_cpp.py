"""Format C++ for human readers."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig

STYLE = "{BasedOnStyle: Google, ColumnLimit: 120, ReflowComments: false}"

_TIMEOUT_S = 20.0


def format_cpp(text: str) -> str:
    """Format C++ with clang-format; without a working one, return the text unchanged."""
    program = shutil.which("clang-format", path=sysconfig.get_path("scripts")) or shutil.which("clang-format")
    if program is None:
        return text
    try:
        done = subprocess.run(
            (program, f"--style={STYLE}", "--assume-filename=source.cpp"),
            input=text,
            capture_output=True,
            encoding="utf-8",
            timeout=_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return text
    return done.stdout if done.returncode == 0 else text
