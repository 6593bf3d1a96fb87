"""Compilers that optimize little or not at all: kernels as right as ever, built in a fraction of the time.

In the tests CXX names one that does not optimize at all. Tests of the kernels themselves have them built as users build
them, by the compiler that CXX named before (`quiet_settings`).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

OPTIMIZING_LITTLE = "-O1 -fno-tree-vectorize"
OPTIMIZING_NOTHING = "-O0 -fuse-ld=gold" if shutil.which("ld.gold") else "-O0"  # which links in a fifth of the time

CHOSEN = "OPWRIGHT_TESTS_CXX"
"""The variable that holds what CXX was before the tests began; empty if it was not set."""


def use_quick_compiler(directory: Path) -> None:
    """Have all that does not ask for more built without optimization, here and in the processes that are started."""
    os.environ[CHOSEN] = os.environ.get("CXX", "")
    os.environ["CXX"] = quick_compiler(directory, OPTIMIZING_NOTHING)


def chosen_compiler() -> str | None:
    """The compiler of the environment in which the tests were started; None if it names none."""
    return os.environ.get(CHOSEN, os.environ.get("CXX")) or None


def quick_compiler(directory: Path, options: str = OPTIMIZING_LITTLE, compiler: str | None = None) -> str:
    """A script that calls a compiler, the chosen one by default, with options after all others, so that they win."""
    compiler = compiler or chosen_compiler() or "g++"
    script = directory / f"quick-g++{options.replace(' ', '')}"
    if not script.exists():
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        script.write_text(f'#!/bin/sh\nexec {compiler} "$@" {options}\n')
        script.chmod(0o700)
    return str(script)
