"""A cache directory for each test, and compilers that do as they are told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from opwright.settings import Settings
from opwright.toolchain.compiler import find_compiler
from opwright.toolchain.source import Source
from tests.executables import write_executable
from tests.keeping_compiler import keeping_compiler
from tests.quick_compiler import OPTIMIZING_NOTHING


@dataclass(frozen=True, slots=True)
class Script:
    """A shell script that stands for a compiler and writes down how it was called."""

    path: Path
    log: Path

    def calls(self, word: str = "") -> int:
        """How many calls had a word on the command line."""
        return sum(word in line for line in self.log.read_text().splitlines()) if self.log.exists() else 0


WriteScript = Callable[..., Script]


@pytest.fixture
def settings(tmp_path: Path, real_compiler: str) -> Settings:
    return Settings(tmp_path / "cache", real_compiler)


@pytest.fixture(scope="session")
def real_compiler(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A script that calls the compiler of users; what all kernels share is compiled once for all tests."""
    folder = tmp_path_factory.mktemp("look")
    found = str(find_compiler(Settings(folder / "cache")).path)
    text = _SHARED_ONCE.format(real=found, keeping=keeping_compiler(OPTIMIZING_NOTHING, found))
    return str(write_executable(folder / "compiler", text))


_SHARED_ONCE = """#!/bin/sh
case " $* " in *" -c shared_"*) exec {keeping} "$@";; esac
exec {real} "$@"
"""


@pytest.fixture
def write_script(tmp_path: Path, real_compiler: str) -> WriteScript:
    """Write a script that runs some lines of shell, then the real compiler."""

    def write(body: str = "", name: str = "compiler") -> Script:
        script = Script(tmp_path / "bin" / name, tmp_path / f"{name}.log")
        write_executable(script.path, f'#!/bin/sh\necho "$*" >> {script.log}\n{body}\nexec {real_compiler} "$@"\n')
        return script

    return write


def returning(value: int, name: str = "kernel") -> Source:
    """A source whose `f()` returns a value."""
    return Source(name, f'extern "C" __attribute__((visibility("default"))) int f() {{ return {value}; }}\n')


def in_the_making(settings: Settings) -> list[Path]:
    """The directories of builds that are under way or were left behind."""
    return list((settings.cache_directory / "building").iterdir())
