"""The declarations of opwright/shim.h agree with torch's own, and every one of them exists."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import pytest
import torch

import opwright
from tests.keeping_compiler import keeping_compiler
from tests.quick_compiler import OPTIMIZING_NOTHING

HEADERS = Path(opwright.__file__).parent / "include"
TORCH_HEADERS = Path(torch.__file__).parent / "include"
TORCH_SHIMS = ("torch/csrc/inductor/aoti_torch/c/shim.h", "torch/csrc/stable/c/shim.h")


def compile_together(directory: Path, extra: str = "") -> subprocess.CompletedProcess[str]:
    """Compile one unit that includes both; C++ refuses two declarations of one C function that differ."""
    includes = [f"#include <{header}>" for header in ("opwright/kernel.h", *TORCH_SHIMS)]
    source = directory / "together.cpp"
    source.write_text("\n".join(['#include "opwright/shim.h"', extra, *includes, ""]))
    compiler, made = keeping_compiler(OPTIMIZING_NOTHING, "g++"), str(directory / "together.o")
    command = [compiler, "-std=c++20", "-c", f"-I{HEADERS}", f"-isystem{TORCH_HEADERS}", str(source), "-o", made]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def declared() -> set[str]:
    text = (HEADERS / "opwright/shim.h").read_text()
    return set(re.findall(r"^int32_t (\w+)\(", text, flags=re.MULTILINE))


def test_declarations_agree_with_torch(tmp_path: Path) -> None:
    done = compile_together(tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_declaration_that_differs_is_noticed(tmp_path: Path) -> None:
    done = compile_together(tmp_path, 'extern "C" int64_t aoti_torch_get_numel(AtenTensorHandle tensor);')
    assert "aoti_torch_get_numel" in done.stderr


@pytest.mark.parametrize("name", sorted(declared()))
def test_torch_has_the_function(name: str) -> None:
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib/libtorch_cpu.so"))
    assert ctypes.cast(getattr(library, name), ctypes.c_void_p).value
