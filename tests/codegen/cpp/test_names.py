"""What C++ reserves wherever it stands is known: keywords, and the macros of all that emitted sources include."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import torch

from opwright.codegen.cpp.names import CPP, MACROS_FILE, reserved, spelling
from opwright.codegen.cuda.program import DEVICE_HEADER, HOST_HEADER
from opwright.ir.names.schema_words import SCHEMA_WORDS_FILE, schema_words
from opwright.settings import Settings
from opwright.toolchain.compiler import find_compiler
from opwright.toolchain.recipe import INCLUDE_DIRECTORY

# What emitted sources include, each by itself: for processors, for launchers, for kernels that run on a processor.
INCLUDED = (("opwright/kernel.h",), (HOST_HEADER,), ("opwright/cuda/host_execution.h", DEVICE_HEADER))


def macros(headers: tuple[str, ...]) -> set[str]:
    """The names of all macros that the compiler knows behind these headers, but for those that no variable can have."""
    compiler = find_compiler(Settings.from_environment())
    text = "#define OPWRIGHT_CUDA_ON_HOST\n" + "".join(f'#include "{header}"\n' for header in headers)
    flags = (*compiler.flags, f"-I{INCLUDE_DIRECTORY}", "-dM", "-E", "-x", "c++", "-")
    listed = subprocess.run([*compiler.command, *flags], input=text, capture_output=True, text=True, check=True).stdout
    names = set(re.findall(r"^#define (\w+)", listed, re.MULTILINE))
    assert names, "the compiler lists no macros"
    return {name for name in names if spelling(name) == name}


@pytest.mark.parametrize("headers", INCLUDED, ids=lambda headers: Path(headers[0]).stem)
def test_macros_are_reserved(headers: tuple[str, ...], request: pytest.FixtureRequest) -> None:
    found = macros(headers) - {"OPWRIGHT_CUDA_ON_HOST"}
    if request.config.getoption("--update-golden"):
        MACROS_FILE.write_text("\n".join(sorted(found | set(MACROS_FILE.read_text().split()))) + "\n")
        reserved.cache_clear()
    missing = sorted(found - reserved())
    assert not missing, f"{missing} are macros of this compiler; see pytest --update-golden"


def test_words_of_schemas_are_reserved(request: pytest.FixtureRequest) -> None:
    """Those that torch's lexer knows and no parameter can be called by."""
    lexer = Path(torch.__file__).parent / "include/torch/csrc/jit/frontend/lexer.h"
    found = {word for word in re.findall(r'"([A-Za-z_]\w*)"', lexer.read_text()) if not is_a_name_in_schemas(word)}
    assert "None" in found
    if request.config.getoption("--update-golden"):
        SCHEMA_WORDS_FILE.write_text("\n".join(sorted(found)) + "\n")
        schema_words.cache_clear()
    assert found <= schema_words() <= reserved()


def is_a_name_in_schemas(word: str) -> bool:
    try:
        torch._C.parse_schema(f"function(Tensor {word}, int other) -> Tensor")
    except RuntimeError:
        return False
    return True


def test_functions_of_emitted_sources_are_not_in_headers() -> None:
    """They are called after the operator, with `_forward` or `_backward` behind."""
    words = {word for header in INCLUDE_DIRECTORY.rglob("*.h") for word in re.findall(r"\w+", header.read_text())}
    assert len(words) > 1000
    assert [word for word in words if "_forward" in word or "_backward" in word] == []


@pytest.mark.parametrize(
    ("name", "spelled"), [("x", "x"), ("_x", "x"), ("x__y", "x_y"), ("__", "unnamed"), ("θ", "theta"), ("M_PI", "M_PI")]
)
def test_spelling(name: str, spelled: str) -> None:
    assert CPP.spelling(name) == spelled
