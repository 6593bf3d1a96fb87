"""Processes on this machine that make up a mesh, with a deadline for all of them."""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.suite.warm_python import start

_PROGRAM = """
import pickle, sys
from tests.sharding.processes import _process

_process(*pickle.loads(bytes.fromhex(sys.argv[1])))
"""


def on_mesh(
    module: str, function: str, count: int, *args: Any, seconds: float, collective_seconds: float | None = None
) -> list[str]:
    """Run a function in each process of a mesh, and return the faults that the processes tell.

    Args:
        module: The module of the function.
        function: Takes the number of processes and what is given besides, and returns faults.
        count: How many processes.
        args: What it is given besides; values that can be pickled.
        seconds: When all are ended.
        collective_seconds: The time limit of a collective; half of that if it is not given.
    """
    with tempfile.TemporaryDirectory() as folder:
        limit = seconds / 2 if collective_seconds is None else collective_seconds
        given = [(module, function, args, rank, count, folder, limit) for rank in range(count)]
        processes = [start("-c", _PROGRAM, pickle.dumps(each).hex()) for each in given]
        end, faults = time.monotonic() + seconds, []
        for rank, process in enumerate(processes):
            told = Path(folder, f"told{rank}")
            try:
                _, errors = process.communicate(max(0.0, end - time.monotonic()))
                said = f"process {rank} told nothing" + (f": {errors}" if errors else "")
                faults += told.read_text().splitlines() if told.exists() else [said]
            except subprocess.TimeoutExpired:
                faults.append(f"process {rank} hung")
    return faults


def _process(
    module: str, function: str, args: tuple[Any, ...], rank: int, count: int, folder: str, seconds: float
) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    store = dist.FileStore(str(Path(folder, "store")), count)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=count, timeout=timedelta(seconds=seconds))
    faults: list[Any] = []
    try:
        faults = getattr(importlib.import_module(module), function)(count, *args)
    except Exception as error:
        faults = [f"process {rank}: {type(error).__name__}: {error}".replace("\n", " ")]
    Path(folder, f"told{rank}").write_text("\n".join(map(str, faults)))
    dist.destroy_process_group()
