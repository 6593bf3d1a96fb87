"""A library that is cut short anywhere is not whole."""

import subprocess
from pathlib import Path

import pytest

from opwright.toolchain.storage.elf import is_whole_library


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """One that a linker has written: those in a PyTorch with CUDA were changed since, and end with something else."""
    source, path = tmp_path / "source.cpp", tmp_path / "whole.so"
    source.write_text('extern "C" int table[2000] = {1}; extern "C" int first() { return table[0]; }')
    subprocess.run(["c++", "-shared", "-fPIC", "-g", str(source), "-o", str(path)], check=True)
    return path


def test_a_library_is_whole_and_none_of_its_beginnings_is(tmp_path, library):
    whole, cut = library.read_bytes(), tmp_path / "cut.so"
    assert is_whole_library(library)
    for length in {*range(70), *range(0, len(whole), 997), len(whole) - 1}:
        cut.write_bytes(whole[:length])
        assert not is_whole_library(cut), length
    cut.write_bytes(whole)
    assert is_whole_library(cut)


@pytest.mark.parametrize("text", [b"", b"garbage", b"#!/bin/sh\n" * 20, b"\x7fELF\x01" + bytes(100), bytes(64)])
def test_what_is_no_library_of_64_bits_is_not(text, tmp_path):
    path = tmp_path / "file.so"
    path.write_bytes(text)
    assert not is_whole_library(path)


def test_a_folder_and_nothing_are_not(tmp_path):
    assert not is_whole_library(tmp_path)
    assert not is_whole_library(tmp_path / "missing.so")
