"""A library that is cut short anywhere is not whole."""

from pathlib import Path

import pytest
import torch

from opwright.toolchain.storage.elf import is_whole_library

LIBRARY = Path(torch.__file__).parent / "lib" / "libshm.so"


def test_a_library_is_whole_and_none_of_its_beginnings_is(tmp_path):
    whole, cut = LIBRARY.read_bytes(), tmp_path / "cut.so"
    assert is_whole_library(LIBRARY)
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
