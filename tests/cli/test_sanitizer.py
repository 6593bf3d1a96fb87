from __future__ import annotations

from pathlib import Path

import pytest

from opwright.cli.main import main
from opwright.cli.sanitizer import run_under
from opwright.errors import SanitizerMissing
from opwright.settings import Settings
from opwright.toolchain.process.own_python import python_command
from tests.executables import write_executable

SCRIPT = '#!/bin/sh\nfor word; do echo "$word"; done > {log}\nexit {status}\n'


def toolkit(folder: Path, status: int) -> tuple[Path, Path]:
    """A toolkit whose compute-sanitizer writes down its words, and where it does."""
    script, log = folder / "bin" / "compute-sanitizer", folder / "log"
    write_executable(script, SCRIPT.format(log=log, status=status))
    return folder, log


@pytest.mark.parametrize("status", [0, 1])
def test_the_same_command_runs_again_under_it(
    status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    home, log = toolkit(tmp_path / "cuda", status)
    monkeypatch.setenv("CUDA_HOME", str(home))
    with pytest.raises(SystemExit) as ended:
        main(
            [
                "check",
                "op.py:f",
                "--device",
                "cuda",
                "--quick",
                "--only",
                "values",
                "--json",
                "--sanitizer",
                "racecheck",
            ]
        )
    words = log.read_text().splitlines()

    assert ended.value.code == status
    assert words[:4] == ["--tool", "racecheck", "--error-exitcode", "1"]
    assert words[-11:-9] == list(python_command("from opwright.cli.main import main; main()")[-2:])
    assert words[-9:-5] == ["check", "op.py:f", "--device", "cuda"]
    assert words[-5:] == ["--dtype=float32", "--dtype=float64", "--only=values", "--quick", "--json"]
    assert capfd.readouterr().out == ""


def test_without_it_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SanitizerMissing, match=r"^compute-sanitizer was not found\nhint: it comes with the CUDA"):
        run_under("memcheck", [], Settings(tmp_path, cuda_home=tmp_path))
