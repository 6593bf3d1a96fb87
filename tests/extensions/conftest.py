"""Sources that compile in a tenth of a second, and compilers that say how often they were called."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from opwright.settings import Settings
from tests.toolchain.conftest import Script, WriteScript, real_compiler, write_script

__all__ = ["real_compiler", "write_script"]

WriteSource = Callable[..., Path]

MODULE = """
#include <Python.h>
static PyObject* answer(PyObject*, PyObject*) { return PyLong_FromLong(ANSWER); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, "the answer"}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "quick", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit_quick() { return PyModule_Create(&module); }
"""


@pytest.fixture
def compiler(write_script: WriteScript) -> Script:
    """The real compiler, with a log of its calls."""
    return write_script()


@pytest.fixture
def settings(tmp_path: Path, compiler: Script) -> Settings:
    return replace(Settings(tmp_path / "cache"), compiler=str(compiler.path), notify=False)


@pytest.fixture
def write(tmp_path: Path) -> WriteSource:
    """Write a file of the user."""

    def write_file(name: str, text: str) -> Path:
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write_file


def returning(expression: str | int, function: str = "f", before: str = "") -> str:
    """A source whose function returns a value."""
    return f'{before}\nextern "C" int {function}() {{ return {expression}; }}\n'


def value_of(library: object, function: str = "f") -> int:
    """What a function of a library returns."""
    return int(getattr(ctypes.CDLL(str(library)), function)())


def in_the_making(settings: Settings) -> list[Path]:
    """The directories of builds that are under way or were left behind."""
    return list((settings.cache_directory / "building").iterdir())
