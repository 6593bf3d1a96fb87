"""CUDA toolkits that only talk: a folder with an nvcc that says where it lives and what it knows."""

from __future__ import annotations

from pathlib import Path

from tests.executables import write_executable

TALK = """#!/bin/sh
echo "$*" >> {log}
case "$*" in
  *--dryrun*) echo '#$ _HERE_={root}/bin' >&2; echo '#$ TOP={root}/bin/..' >&2;;
  *--version*) echo 'Cuda compilation tools, release {version}, V{version}.88';;
  *--list-gpu-code*) printf 'sm_75\\nsm_80\\nsm_90\\nsm_100\\nsm_120\\n';;
esac
"""


def fake_toolkit(root: Path, version: str = "13.0", libraries: str = "lib64/libcudart.so") -> Path:
    """Write a toolkit, and return its nvcc."""
    for name in ("include/cuda_runtime.h", libraries):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    return write_executable(root / "bin" / "nvcc", TALK.format(root=root, version=version, log=root / "calls"))


def wrapper(path: Path, nvcc: Path) -> Path:
    """Write a script that calls an nvcc which lives elsewhere."""
    return write_executable(path, f'#!/bin/sh\nexec {nvcc} "$@"\n')
