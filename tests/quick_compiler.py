"""Compilers that optimize little or not at all: kernels as right as ever, built in a fraction of the time.

In the tests CXX names one that does not optimize at all. Tests of the kernels themselves have them built as users build
them, by the compiler that CXX named before (`quiet_settings`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from opwright.toolchain.process.cores import available_cores
from opwright.toolchain.recipe import INCLUDE_DIRECTORY, header_digests
from opwright.toolchain.storage.records import canonical_json, digest
from tests.executables import write_executable


def _gold_links() -> bool:
    """Whether the compiler's libraries are where gold looks for them."""
    if not shutil.which("ld.gold"):
        return False
    with tempfile.TemporaryDirectory() as folder:
        command = ["g++", "-fuse-ld=gold", "-shared", "-x", "c++", "/dev/null", "-o", f"{folder}/linked.so"]
        return subprocess.run(command, capture_output=True).returncode == 0


OPTIMIZING_LITTLE = "-O1 -fno-tree-vectorize"
OPTIMIZING_NOTHING = "-O0 -fuse-ld=gold" if _gold_links() else "-O0"  # which links in a fifth of the time

OF_KERNELS = "-fno-exceptions -fno-asynchronous-unwind-tables"  # which throw nothing

CHOSEN = "OPWRIGHT_TESTS_CXX"
"""The variable that holds what CXX was before the tests began; empty if it was not set."""

FOLDER = "OPWRIGHT_TESTS_COMPILERS"
"""The variable that names the folder of the scripts: one for all runs, as libraries depend on their compiler's path."""


def use_quick_compiler(directory: Path) -> None:
    """Have all that does not ask for more built without optimization, here and in the processes that are started."""
    os.environ[CHOSEN] = os.environ.get("CXX", "")
    os.environ[FOLDER] = str(directory)
    os.environ["CXX"] = quick_compiler(OPTIMIZING_NOTHING)


def chosen_compiler() -> str | None:
    """The compiler of the environment in which the tests were started; None if it names none."""
    return os.environ.get(CHOSEN, os.environ.get("CXX")) or None


def quick_compiler(options: str = OPTIMIZING_LITTLE, compiler: str | None = None) -> str:
    """A script that calls a compiler, the chosen one by default, with options after all others, so that they win.

    Scripts run at most one compiler for each core, whatever processes call them. Headers of kernels are compiled once.
    """
    real = compiler or chosen_compiler() or "g++"
    text = _SCRIPT.format(
        slots=" ".join(map(str, range(available_cores()))),
        compiler=real,
        options=options,
        of_kernels=OF_KERNELS,
        headers=INCLUDE_DIRECTORY,
        ready=f"headers-{digest(canonical_json([header_digests(INCLUDE_DIRECTORY), real, options, OF_KERNELS]))[:12]}",
    )
    directory = Path(os.environ.get(FOLDER) or tempfile.mkdtemp(prefix="opwright-compilers-"))
    script = directory / f"quick-g++-{digest(text)[:12]}"
    if not script.exists():
        write_executable(script, text)
    return str(script)


# The compiler inherits the lock, and lets go of it when it ends. Precompiled headers (GCC's) take 0.08 of the 0.27 s of
# a small kernel away, and 0.47 of the 0.55 s of CUDA kernels on the processor. GCC passes over those of other flags;
# their folder is that of the headers' content. What asks for the names of the headers (-MD) reads them.
_SCRIPT = """#!/bin/sh
precompile() {{
  for word do
    shift
    case $word in
      -std=*|-f*|-m*|-O*|-D*|-I*|-w) set -- "$@" "$word";;
    esac
  done
  {compiler} "$@" {options} -x c++-header "{headers}/opwright/$first" -o "$begun/opwright/$first.gch"
}}
use() {{
  first=$1
  shift
  folder=opwright/$first
  folder=${{folder%/*}}
  ready=${{0%/*}}/{ready}-${{first##*/}}
  begun=$ready-begun
  if [ ! -d "$ready" ] && mkdir "$begun" 2>/dev/null; then
    mkdir -p "$begun/$folder"
    ln -s "{headers}/$folder"/* "$begun/$folder"
    [ "$folder" = opwright ] || ln -s {headers}/opwright/* "$begun/opwright" 2>/dev/null
    precompile "$@" 2>/dev/null && mv "$begun" "$ready"
  fi
}}
compile() {{
  case " $* " in
    *" -MD "*) ;;
    *" -DOPWRIGHT_APART "*"-I{headers} "*) set -- "$@" {of_kernels}; use kernel.h "$@"; set -- "-I$ready" "$@";;
    *" -DOPWRIGHT_CUDA_ON_HOST "*"-I{headers} "*) use cuda/host_execution.h "$@"; set -- "-I$ready" "$@";;
  esac
  exec {compiler} "$@" {options}
}}
if command -v flock >/dev/null; then
  for slot in {slots}; do
    exec 9>"${{0%/*}}/core-$slot"
    flock -n 9 && compile "$@"
  done
  flock 9
fi
compile "$@"
"""
