"""Formatting of C++ for people to read."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig

STYLE = "{BasedOnStyle: Google, ColumnLimit: 120, ReflowComments: false}"

_TIMEOUT_S = 20.0


def format_cpp(text: str) -> str:
    """Lay C++ out with clang-format; where there is none that works, the text comes back as it is."""
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
