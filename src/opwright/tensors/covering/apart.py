"""Apart: work in a process of its own, so that a type that ends the process, or never answers, ends only that one.

items ─→ a forked process, which sends what it found of each ─→ after an end, another one for the rest
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import select
import signal
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import torch

Item = TypeVar("Item")
Begin = Callable[[str], None]
Work = Callable[[Item, Begin, Mapping[str, str]], Any]

PATIENCE_S = 60.0
"""How long a step may take."""
_MOST_BYTES = 1 << 16


def each_apart(work: Work[Item], items: Sequence[Item], patience_s: float = PATIENCE_S) -> Iterator[Any]:
    """What work finds of each item, in their order.

    Args:
        work: Takes an item, a function to call with the name of each step that may end the process, and the steps that
            did, with how, which it must leave out. What it returns is sent as JSON.
        items: What it works on.
        patience_s: How long a step may take.

    Raises:
        RuntimeError: Work raised, or its process ended outside of a step.
    """
    position, ended = 0, dict[str, str]()
    while position < len(items):
        child, news = _fork(work, items[position:], ended)
        step, is_over = "", False
        try:
            for told in _messages(news, patience_s):
                if "raised" in told:
                    raise RuntimeError(told["raised"])
                if "found" in told:
                    yield told["found"]
                    position, step, ended = position + 1, "", {}
                step = told.get("step", step)
                is_over = "over" in told
        finally:
            os.close(news)
            how = _end(child, is_over=is_over)
        if position < len(items):
            if not step or step in ended:
                raise RuntimeError(f"the process that tries functions was ended by {how}")
            ended = {**ended, step: how}


def _fork(work: Work[Item], items: Sequence[Item], ended: Mapping[str, str]) -> tuple[int, int]:
    """The process, and where its messages are read."""
    news, told = os.pipe()
    child = os.fork()
    if child:
        os.close(told)
        return child, news
    try:
        os.close(news)
        torch.set_num_threads(1)  # those of the parent do not exist here
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # ends are expected
        _work_off(work, items, ended, told)
    finally:
        os._exit(0)


def _work_off(work: Work[Item], items: Sequence[Item], ended: Mapping[str, str], told: int) -> None:
    def tell(message: Mapping[str, Any]) -> None:
        data = (json.dumps(message) + "\n").encode()
        while data:
            data = data[os.write(told, data) :]

    try:
        for item in items:
            tell({"found": work(item, lambda step: tell({"step": step}), ended)})
            ended = {}
    except Exception:
        tell({"raised": traceback.format_exc()})


def _messages(news: int, patience_s: float) -> Iterator[dict[str, Any]]:
    """What a process tells, and that it is over; without that if it tells nothing for too long."""
    rest = b""
    while select.select([news], [], [], patience_s)[0]:
        data = os.read(news, _MOST_BYTES)
        if not data:
            yield {"over": True}
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield json.loads(line)


def _end(child: int, *, is_over: bool) -> str:
    """How a process ended; one that is not over is killed."""
    if not is_over:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not is_over:
        return "no answer"
    return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit code {status >> 8}"
