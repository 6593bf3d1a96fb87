"""Processes on this machine that make up a mesh, with a deadline for all of them."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

Judge = Callable[..., Sequence[str]]


def on_local_mesh(judge: Judge, args: Sequence[Any], count: int, *, seconds: float) -> list[str]:
    """Run a function in each process of a mesh, over gloo and 127.0.0.1, and return what the processes tell.

    Args:
        judge: `(how many processes, *args) -> faults`, a function that a new process can import.
        args: Values that can be pickled.
        count: How many processes.
        seconds: When all are ended; the time limit of a collective is half of it.

    Returns:
        The faults, and a line for each process that hung or died.
    """
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        given = [(judge, tuple(args), rank, count, folder, seconds / 2) for rank in range(count)]
        processes = [context.Process(target=_run, args=each, daemon=True) for each in given]
        try:
            for process in processes:
                process.start()
            end = time.monotonic() + seconds
            for process in processes:
                process.join(max(0.0, end - time.monotonic()))
            faults = [f"process {rank} hung" for rank, process in enumerate(processes) if process.is_alive()]
        finally:
            for process in processes:
                if process.pid is not None:
                    process.kill()
                    process.join()
        for rank in range(count):
            told = Path(folder, f"told{rank}")
            faults += told.read_text(encoding="utf-8").splitlines() if told.exists() else [f"process {rank} died"]
    return faults


def _run(judge: Judge, args: tuple[Any, ...], rank: int, count: int, folder: str, seconds: float) -> None:
    import torch
    import torch.distributed as dist

    from opwright.settings import keep_to_this_machine

    torch.set_num_threads(1)
    keep_to_this_machine()
    store = dist.FileStore(str(Path(folder, "store")), count)  # type: ignore[attr-defined]
    dist.init_process_group("gloo", store=store, rank=rank, world_size=count, timeout=timedelta(seconds=seconds))
    try:
        faults = list(judge(count, *args))
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error}".replace("\n", " ")
        faults = [f"process {rank}: {text} ({where.name}, line {where.lineno})"]
    Path(folder, f"told{rank}").write_text("\n".join(faults), encoding="utf-8")
    dist.destroy_process_group()
