"""The tag of a wheel is that of the oldest Linux that has all its libraries ask for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from opwright.deployment.wheels.platform_tag import can_tell, platform_tag

needs_auditwheel = pytest.mark.skipif(not can_tell(), reason="auditwheel is not installed")
# std::pmr came with libstdc++ of GCC 9: GLIBCXX_3.4.26, which a Linux with glibc 2.28 does not have.
OF_LATER_LIBSTDCXX = """
#include <memory_resource>
extern "C" void* f() { return std::pmr::get_default_resource(); }
"""
OF_GLIBC = '#include <dlfcn.h>\nextern "C" void* f() { return dlopen("x", RTLD_NOW); }\n'
OF_THE_LOADER = 'thread_local int calls; extern "C" int f() { return ++calls; }'
OF_OPENMP = 'extern "C" int omp_get_num_threads();\nextern "C" int f() { return omp_get_num_threads(); }\n'


def built(folder: Path, text: str, *flags: str) -> Path:
    (folder / "library.cpp").write_text(text)
    command = ["g++", "-std=c++17", "-shared", "-fPIC", "library.cpp", "-o", "library.so", *flags]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "library.so"


def versions_in(library: Path, of: str) -> set[tuple[int, ...]]:
    """What a library asks for, by another tool than the one under test."""
    told = subprocess.run(["objdump", "-p", str(library)], capture_output=True, text=True, check=True).stdout
    found = [word.removeprefix(f"{of}_") for word in told.split() if word.startswith(f"{of}_")]
    return {tuple(map(int, each.split("."))) for each in found}


@needs_auditwheel
def test_what_asks_for_nothing_runs_where_torch_does(tmp_path: Path) -> None:
    assert platform_tag([built(tmp_path, 'extern "C" int f() { return 1; }')], "x86_64") == "manylinux_2_28_x86_64"


@needs_auditwheel
def test_the_loader_is_there_on_every_linux(tmp_path: Path) -> None:
    library = built(tmp_path, OF_THE_LOADER)
    told = subprocess.run(["objdump", "-p", str(library)], capture_output=True, text=True, check=True).stdout
    assert "NEEDED               ld-linux" in told
    major, minor = max({(2, 28), *versions_in(library, "GLIBC")})

    assert platform_tag([library], "x86_64") == f"manylinux_{major}_{minor}_x86_64"


@needs_auditwheel
def test_the_newest_symbol_of_glibc_decides(tmp_path: Path) -> None:
    library = built(tmp_path, OF_GLIBC)
    major, minor = max({(2, 28), *versions_in(library, "GLIBC")})

    assert platform_tag([library], "x86_64") == f"manylinux_{major}_{minor}_x86_64"


@needs_auditwheel
def test_so_does_the_newest_one_of_libstdcxx(tmp_path: Path) -> None:
    library = built(tmp_path, OF_LATER_LIBSTDCXX)
    assert max(versions_in(library, "GLIBCXX")) >= (3, 4, 26)
    assert max({(2, 0), *versions_in(library, "GLIBC")}) <= (2, 28)

    assert platform_tag([library], "x86_64") == "manylinux_2_31_x86_64"


@needs_auditwheel
@pytest.mark.parametrize(
    ("text", "flags", "machine"), [(OF_OPENMP, ("-lgomp",), "x86_64"), (OF_GLIBC, (), "unheard_of")]
)
def test_what_no_policy_has_is_for_machines_like_this_one(
    text: str, flags: tuple[str, ...], machine: str, tmp_path: Path
) -> None:
    assert platform_tag([built(tmp_path, text, *flags)], machine) == f"linux_{machine}"


def test_without_auditwheel_nothing_is_promised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "auditwheel.elfutils", None)

    assert platform_tag([built(tmp_path, OF_GLIBC)], "x86_64") == "linux_x86_64"
