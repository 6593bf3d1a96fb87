"""Parts of long lists of checks, for machines or processes that each do one: "2/5" is the second of five."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from itertools import zip_longest
from typing import Any, TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")
_NONE: Any = object()


def part_of(items: Sequence[Item], part: str) -> Sequence[Item]:
    """The items of one part: every n-th, so that parts of a list in order take about equally long.

    Args:
        items: All of them; the same in all parts.
        part: "i/n", from "1/n" to "n/n"; all items if it is empty.

    Raises:
        ValueError: If it is written otherwise.
    """
    if not part:
        return items
    found = re.fullmatch(r"(\d+)/(\d+)", part)
    index, count = map(int, found.groups()) if found else (0, 0)
    if not 1 <= index <= count:
        raise ValueError(f"a part is written i/n, from 1/n to n/n, such as 2/5; got {part!r}")
    return items[index - 1 :: count]


def whole_of(parts: Sequence[Sequence[Item]]) -> list[Item]:
    """The inverse of `part_of`: the items of all parts, in the order of the whole."""
    turns = zip_longest(*parts, fillvalue=_NONE)
    return [item for turn in turns for item in turn if item is not _NONE]


def in_parts(executor: Executor, count: int, run: Callable[..., Found], *args: Any, **kwargs: Any) -> list[Found]:
    """Run a function for each part, by an executor, and wait for all.

    Args:
        executor: Of `concurrent.futures`, or of an engine that has one, such as Dask's `Client.get_executor()`.
        count: How many parts.
        run: `(*args, part="i/n", **kwargs) -> what was found`; executors of other processes pickle all of it.
        args: Its arguments.
        kwargs: Those by name.
    """
    waiting = [executor.submit(run, *args, part=f"{number}/{count}", **kwargs) for number in range(1, count + 1)]
    return [each.result() for each in waiting]
