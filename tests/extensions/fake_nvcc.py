"""A CUDA toolkit whose nvcc compiles with g++, so that whole builds with CUDA sources run where there is none."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.executables import write_executable
from tests.toolchain.fake_toolkit import fake_toolkit

# Compiles what is host code; the device link makes an object that has a symbol of its own.
_COMPILING = r"""
import subprocess, sys
words = sys.argv[1:]
out = words[words.index("-o") + 1]
if "-dlink" in words:
    command = ["g++", "-fPIC", "-x", "c++", "-", "-c", "-o", out]
    text = 'extern "C" int device_linked() { return %d; }' % sum(word.endswith(".o") and word != out for word in words)
    sys.exit(subprocess.run(command, input=text.encode()).returncode)
kept, skip = [], False
for word in words:
    if skip or word.startswith(("-gencode", "--expt", "-rdc", "-arch")):
        skip = False
    elif word in ("--compiler-options", "-ccbin"):
        skip = word == "-ccbin"
    else:
        kept += ["-x", "c++", word] if word.endswith(".cu") else [word]
sys.exit(subprocess.run(["g++", *kept]).returncode)
"""


def compiling_toolkit(root: Path) -> Path:
    """Write the toolkit, with the libraries that a PyTorch for CUDA has; return the folder of these."""
    talking = fake_toolkit(root).rename(root / "bin" / "talk")
    (root / "compile.py").write_text(_COMPILING)
    write_executable(
        root / "bin" / "nvcc",
        f'#!/bin/sh\ncase "$*" in\n  *--dryrun*|*--version*|*--list*) exec {talking} "$@";;\nesac\n'
        f'echo "$*" >> {root}/calls\nexec python3 {root}/compile.py "$@"\n',
    )
    for library in (
        root / "lib64" / "libcudart.so",
        root / "torch" / "libc10_cuda.so",
        root / "torch" / "libtorch_cuda.so",
    ):
        library.parent.mkdir(exist_ok=True)
        subprocess.run(["g++", "-shared", "-x", "c++", "/dev/null", "-x", "none", "-o", library], check=True)
    (root / "lib64" / "libcudadevrt.a").write_bytes(b"!<arch>\n")
    return root / "torch"
