"""Sweep PyTorch's table of operations: what runs as a kernel, what as library calls, what by the reference.

    python -m tests.opinfo.sweep --json FILE [--names add,mul] [--dtypes float32] [--samples 4] [--derive | --quick]

`--part 2/5` sweeps the second of five parts of the entries.

FILE has one line of JSON for each entry (an operation in a dtype); entries that it has already are left out, so a sweep
that was stopped goes on. Each chunk of entries has a process of its own, so that a crash is recorded and not fatal.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from opwright.checking.parts import part_of
from opwright.settings import Settings
from tests.opinfo.cases import DTYPES, operations
from tests.quick_compiler import quick_compiler

_ENTRIES_OF_A_PROCESS = 40


def entries_of(names: Sequence[str], dtypes: Sequence[str]) -> list[str]:
    """All entries, or those of some operations; a name also means its variants."""
    chosen = {n: i for n, i in operations().items() if not names or n in names or i.name in names}
    return [f"{name}|{dtype}" for dtype in dtypes for name, info in chosen.items() if DTYPES[dtype] in info.dtypes]


def read_records(file: Path) -> dict[str, dict[str, Any]]:
    """What a file holds, by entry; the last record of an entry counts."""
    lines = file.read_text().splitlines() if file.exists() else []
    return {record["entry"]: record for record in map(json.loads, lines)}


def sweep(entries: Sequence[str], file: Path, samples: int, options: dict[str, Any], jobs: int = 1) -> None:
    """Sweep the entries that a file does not have."""
    done = read_records(file)
    missing = [entry for entry in entries if entry not in done]
    chunks = [missing[i : i + _ENTRIES_OF_A_PROCESS] for i in range(0, len(missing), _ENTRIES_OF_A_PROCESS)]
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda chunk: _sweep_chunk(chunk, file, samples, options), chunks))


def _sweep_chunk(entries: Sequence[str], file: Path, samples: int, options: dict[str, Any]) -> None:
    left = list(entries)
    while left:
        command = [sys.executable, "-m", "tests.opinfo.worker", str(file), str(samples), json.dumps(options), *left]
        status = subprocess.run(command).returncode
        done = read_records(file)
        left = [entry for entry in left if entry not in done]
        if left:
            _record_loss(left.pop(0), file, status)
        print(f"{len(done)} entries swept", file=sys.stderr)


def _record_loss(entry: str, file: Path, status: int) -> None:
    how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
    lost = {"entry": entry, "group": "other", "served": {"crash": 1}, "reasons": {f"ended with {how}": 1}}
    nothing = {"skipped": {}, "kernels": 0, "calls": {}, "wrong": [], "seconds": 0.0}
    with file.open("a") as lines:
        lines.write(json.dumps(lost | nothing) + "\n")


def main() -> None:
    """Read the command line and sweep."""
    parser = argparse.ArgumentParser(prog="python -m tests.opinfo.sweep")
    parser.add_argument("--json", type=Path, required=True, help="where the records are, and are added")
    parser.add_argument("--names", default="", help="operations, with commas; all by default")
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--part", default="", help="one of n parts of the entries, such as 2/5")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--derive", action="store_true", help="only derive: build and run nothing")
    parser.add_argument("--quick", action="store_true", help="build with -O1")
    given = parser.parse_args()
    settings = Settings.from_environment()
    options: dict[str, Any] = {}
    if not given.derive:
        quick = quick_compiler() if given.quick else settings.compiler
        options = {"cache": str(settings.cache_directory), "compiler": quick}
    os.environ.setdefault("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    entries = entries_of([name for name in given.names.split(",") if name], given.dtypes.split(","))
    sweep(part_of(entries, given.part), given.json, given.samples, options, given.jobs)


if __name__ == "__main__":
    main()
