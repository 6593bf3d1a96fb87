from __future__ import annotations

import ctypes
import io
import json
import logging
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from opwright.errors import BuildFailed
from opwright.settings import Settings
from opwright.toolchain import build as build_module
from opwright.toolchain.build import build, build_shared
from opwright.toolchain.recipe import INCLUDE_DIRECTORY
from opwright.toolchain.source import Source
from tests.suite.nights import mostly_at_night
from tests.toolchain.conftest import WriteScript, in_the_making, returning

EXPORTED = 'extern "C" __attribute__((visibility("default")))'
SLOW_KERNEL = 'case "$*" in *kernel.cpp*) {};; esac'


def value_of(library: Path) -> int:
    return int(ctypes.CDLL(str(library)).f())


def test_a_library_computes_and_has_its_papers_beside_it(settings: Settings) -> None:
    source = returning(7)
    (library,) = build([source], settings)
    stamp = json.loads((library.parent / "stamp.json").read_text())

    assert value_of(library) == 7
    assert sorted(path.name for path in library.parent.iterdir()) == ["kernel.cpp", "kernel.so", "stamp.json"]
    assert (library.parent / "kernel.cpp").read_text() == source.text
    assert {"torch", "compiler", "command", "headers", "processor"} < set(stamp["facts"])
    assert in_the_making(settings) == []


def test_paths_come_in_the_order_of_the_sources(settings: Settings, write_script: WriteScript) -> None:
    script = write_script()
    libraries = build([returning(1), returning(2), returning(1)], replace(settings, compiler=str(script.path)))

    assert [value_of(library) for library in libraries] == [1, 2, 1]
    assert script.calls("kernel.cpp") == 2


def test_nothing_to_build_is_no_error(settings: Settings) -> None:
    assert build([], settings) == ()


def test_a_warm_cache_starts_no_process(settings: Settings, write_script: WriteScript) -> None:
    script = write_script()
    settings = replace(settings, compiler=str(script.path))
    cold = build([returning(7)], settings)
    calls = script.calls()

    assert build([returning(7)], replace(settings, notify=False)) == cold
    assert script.calls() == calls


def test_symbols_of_torch_are_found(settings: Settings) -> None:
    text = f'extern "C" int aoti_torch_dtype_float32();\n{EXPORTED} int f() {{ return aoti_torch_dtype_float32(); }}'
    (library,) = build([Source("kernel", text)], settings)

    assert value_of(library) == 6


def test_symbols_that_torch_lacks_are_found_out_when_loading(settings: Settings) -> None:
    text = f'extern "C" int aoti_torch_no_such();\n{EXPORTED} int f() {{ return aoti_torch_no_such(); }}'
    (library,) = build([Source("kernel", text)], settings)

    with pytest.raises(OSError, match="undefined symbol: aoti_torch_no_such"):
        ctypes.CDLL(str(library))


def test_standard_libraries_are_found(settings: Settings) -> None:
    text = f'#include <string>\n{EXPORTED} int f() {{ return std::stoi(std::string("4") + "2"); }}'
    (library,) = build([Source("kernel", text)], settings)

    assert value_of(library) == 42


def test_a_changed_header_builds_anew(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "INCLUDE_DIRECTORY", tmp_path / "include")
    header = tmp_path / "include" / "opwright" / "answer.h"
    shutil.copytree(INCLUDE_DIRECTORY, tmp_path / "include")
    source = Source("kernel", f"#include <opwright/answer.h>\n{EXPORTED} int f() {{ return ANSWER; }}")
    values = []
    for answer in (1, 2, 1):
        header.write_text(f"#define ANSWER {answer}\n")
        values.append(value_of(build([source], settings)[0]))

    assert values == [1, 2, 1]


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def alter_facts(path: Path) -> None:
    stamp = json.loads(path.read_text())
    stamp["facts"]["torch"] = "1.0"
    path.write_text(json.dumps(stamp))


DAMAGES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "library cut short": ("kernel.so", shorten),
    "library altered": ("kernel.so", flip_a_byte),
    "library gone": ("kernel.so", Path.unlink),
    "stamp cut short": ("stamp.json", shorten),
    "stamp empty": ("stamp.json", lambda path: path.write_bytes(b"") and None),
    "stamp of other facts": ("stamp.json", alter_facts),
    "stamp gone": ("stamp.json", Path.unlink),
}


@pytest.mark.parametrize(("name", "damage"), mostly_at_night(DAMAGES.values(), by_day=3), ids=DAMAGES)
def test_a_damaged_entry_is_built_anew(
    name: str, damage: Callable[[Path], None], settings: Settings, write_script: WriteScript
) -> None:
    script = write_script()
    settings = replace(settings, compiler=str(script.path))
    (library,) = build([returning(7)], settings)
    damage(library.parent / name)

    assert build([returning(7)], settings) == (library,)
    assert value_of(library) == 7
    assert script.calls("kernel.so") == 2
    assert in_the_making(settings) == []


def test_a_refused_source_is_kept_and_its_first_errors_are_said(settings: Settings) -> None:
    source = Source("kernel", "int f() {\n  return undeclared;\n}\n")
    with pytest.raises(BuildFailed) as caught:
        build([source], settings)
    (kept,) = settings.cache_directory.glob("failed/*/kernel.cpp")
    again = subprocess.run(str(caught.value.hint).partition(": ")[2], shell=True, capture_output=True, text=True)

    assert caught.value.fact.startswith(f"compiling {kept} failed\n")
    assert "kernel.cpp:2:10: error: 'undeclared'" in caught.value.fact.replace("\u2018", "'").replace("\u2019", "'")
    assert len(caught.value.fact.splitlines()) <= 6
    assert kept.read_text() == source.text
    assert again.returncode != 0
    assert "kernel.cpp:2:10: error:" in again.stderr
    assert in_the_making(settings) == []


def test_a_failure_leaves_the_other_libraries(settings: Settings, write_script: WriteScript) -> None:
    script = write_script()
    settings = replace(settings, compiler=str(script.path))
    for _ in range(2):
        with pytest.raises(BuildFailed, match=r"bad\.cpp failed"):
            build([returning(1, "good"), Source("bad", "nonsense")], settings)

    assert script.calls("good.cpp") == 1
    assert script.calls("bad.cpp") == 2


def wait_until_over(pid: int) -> None:
    """Wait for a process that is not our child to be gone, or to have ended with nobody who asks."""
    status = Path(f"/proc/{pid}/status")
    deadline = time.monotonic() + 60
    while status.exists() and "State:\tZ" not in status.read_text():
        assert time.monotonic() < deadline, f"process {pid} goes on"
        time.sleep(0.01)


def test_a_compiler_that_hangs_is_stopped(settings: Settings, write_script: WriteScript, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = write_script(SLOW_KERNEL.format(f"sleep 600 & echo $! > {pid_file}; wait"))
    settings = replace(settings, compiler=str(script.path))
    build_shared(settings)
    with pytest.raises(BuildFailed, match=r"kernel\.cpp took too long and was stopped\nhint: see it again"):
        build([returning(7)], settings, timeout_s=0.5)

    wait_until_over(int(pid_file.read_text()))


class Terminal(io.StringIO):
    """A stderr that says whether it is a terminal."""

    def __init__(self, interactive: bool) -> None:
        super().__init__()
        self.interactive = interactive

    def isatty(self) -> bool:
        return self.interactive


TALK = {
    "slow": ("sleep 0.3", 1, True, True, "opwright: building kernel …\n"),
    "two": ("sleep 0.3", 2, True, True, "opwright: building kernel and 1 more …\n"),
    "quiet": ("sleep 0.3", 1, False, True, ""),
    "no terminal": ("sleep 0.3", 1, True, False, ""),
}


@pytest.mark.parametrize(("body", "count", "notify", "interactive", "said"), TALK.values(), ids=TALK)
def test_a_slow_build_is_announced_once(
    body: str,
    count: int,
    notify: bool,
    interactive: bool,
    said: str,
    settings: Settings,
    write_script: WriteScript,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    script = write_script(SLOW_KERNEL.format(body))
    monkeypatch.setattr("opwright.toolchain.process.notice._QUIET_S", 0.1)
    monkeypatch.setattr(sys, "stderr", Terminal(interactive))
    build([returning(value) for value in range(count)], replace(settings, compiler=str(script.path), notify=notify))

    told = [record for record in caplog.records if record.levelno >= logging.WARNING]  # what Python writes by itself
    assert "".join(f"{record.name}: {record.getMessage()}\n" for record in told) == said


def test_a_quick_build_is_silent(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal(interactive=True))
    monkeypatch.setattr("opwright.toolchain.process.notice._QUIET_S", 60.0)
    build([returning(7)], settings)

    assert sys.stderr.getvalue() == ""


def test_what_kernels_share_is_compiled_once(settings: Settings, write_script: WriteScript) -> None:
    script = write_script()
    settings = replace(settings, compiler=str(script.path))
    text = (
        '#include "opwright/kernel.h"\n'
        + EXPORTED
        + " const void* f() { return (void*)static_cast<void (*)(const opwright::Operands&, opwright::Size, "
        "opwright::RowFunction)>(&opwright::for_each_row); }\n"
    )
    for number in range(3):
        (library,) = build([Source(f"kernel_{number}", text)], settings)
        assert ctypes.CDLL(str(library)).f() != 0
    assert script.calls("-c shared_rows.cpp") == script.calls("-c shared_") == 1
    assert script.calls("shared_rows.o") == 4


def test_another_flag_is_for_what_kernels_share_too(settings: Settings) -> None:
    streams = ("-DOPWRIGHT_LEAST_STREAMED_BYTES=0",)
    assert build_shared(settings) != build_shared(settings, streams)
