"""Processes on this machine that make up a mesh, with a deadline for all of them."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any


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
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        limit = seconds / 2 if collective_seconds is None else collective_seconds
        given = [(module, function, args, rank, count, folder, limit) for rank in range(count)]
        processes = [context.Process(target=_process, args=each, daemon=True) for each in given]
        for process in processes:
            process.start()
        end = time.monotonic() + seconds
        for process in processes:
            process.join(max(0.0, end - time.monotonic()))
        faults = [f"process {rank} hung" for rank, process in enumerate(processes) if process.is_alive()]
        for process in processes:
            process.kill()
        for rank in range(count):
            told = Path(folder, f"told{rank}")
            faults += told.read_text().splitlines() if told.exists() else [f"process {rank} told nothing"]
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
