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
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path / "cache")


@pytest.fixture(scope="session")
def real_compiler(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(find_compiler(Settings(tmp_path_factory.mktemp("look") / "cache")).path)


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
