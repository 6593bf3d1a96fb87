"""Compilers that optimize little or not at all: kernels as right as ever, built in a fraction of the time."""

from __future__ import annotations

from pathlib import Path

OPTIMIZING_LITTLE = "-O1 -fno-tree-vectorize"
OPTIMIZING_NOTHING = "-O0"


def quick_compiler(directory: Path, options: str = OPTIMIZING_LITTLE, compiler: str = "${CXX:-g++}") -> str:
    """A script that calls a compiler, the environment's by default, with options after all others, so that they win."""
    script = directory / f"quick-g++{options.replace(' ', '')}"
    if not script.exists():
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        script.write_text(f'#!/bin/sh\nexec {compiler} "$@" {options}\n')
        script.chmod(0o700)
    return str(script)
