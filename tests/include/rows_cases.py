"""Random kernels for rows_driver.cpp; run as `python -m tests.include.rows_cases LIBRARY SEEDS WRONG`."""

from __future__ import annotations

import ctypes
import json
import math
import sys
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Case:
    """Axes, and for each operand the size and order of the memory it is a view of.

    Attributes:
        dtype: Of every operand.
        extents: Of the axes.
        grain: Elements below which there is one thread.
        layouts: For x, y and out: how far apart its elements lie, along which axes it does not move, and the order of
            its axes in memory.
    """

    dtype: str
    extents: tuple[int, ...]
    grain: int
    layouts: dict[str, tuple[tuple[int, ...], tuple[bool, ...], tuple[int, ...]]]

    @property
    def total(self) -> int:
        return math.prod(self.extents)

    def array(self, name: str) -> Array:
        """The operand, in memory that ends with its last element."""
        steps, still, order = self.layouts[name]
        sizes = [1 if still[axis] else self.extents[axis] for axis in range(len(self.extents))]
        shape = [max((sizes[axis] - 1) * steps[axis] + 1, 0) if sizes[axis] else 0 for axis in order]
        values = np.random.default_rng(7).integers(0, 50, shape).astype(self.dtype)
        view = values[tuple(slice(None, None, steps[axis]) for axis in order)].transpose(np.argsort(order))
        return np.broadcast_to(view, self.extents) if name != "out" else view

    def strides(self, name: str) -> list[int]:
        """In elements, as kernels count them."""
        array = self.array(name)
        return [stride // array.itemsize for stride in array.strides]


def random_case(seed: int) -> Case:
    random = Random(seed)
    rank = random.choice([1, 2, 3, 5])
    longest = {1: 900, 2: 300, 3: 12, 5: 5}[rank]
    extents = tuple(random.choice([1, 1, 2, random.randint(1, longest), longest]) for _ in range(rank))
    if random.random() < 0.03:
        extents = (*extents[:-1], 0)

    def layout(name: str) -> tuple[tuple[int, ...], tuple[bool, ...], tuple[int, ...]]:
        steps = tuple(random.choice([1, 1, 1, 2, 5]) for _ in extents)
        still = [name != "out" and random.random() < 0.25 for _ in extents]
        still[-1] = still[-1] or name == "y"
        order = [*range(rank)]
        if random.random() < 0.4:
            random.shuffle(order)
        return steps, tuple(still), tuple(order)

    return Case(
        dtype=random.choice(["float32", "int64", "uint8", "int16", "complex128"]),
        extents=extents,
        grain=random.choice([1, 2, 7, 64, 1000, 10**6]),
        layouts={name: layout(name) for name in ("x", "y", "out")},
    )


def run(library: ctypes.CDLL, case: Case, wrong: bool) -> None:
    """Run one case.

    Raises:
        SystemExit: If the result differs from NumPy's.
    """
    x, y, out = (case.array(name) for name in ("x", "y", "out"))
    expected = (x + y).astype(case.dtype)
    rank = len(case.extents)
    extents = (ctypes.c_int64 * rank)(*case.extents)
    strides = [step for name in ("x", "y", "out") for step in case.strides(name)]
    if wrong:
        strides[rank - 1] = 0
    pieces = getattr(library, f"add_{case.dtype}")(
        rank, extents, (ctypes.c_int64 * len(strides))(*strides), *(_pointer(array) for array in (x, y, out)),
        ctypes.c_int64(case.grain),
    )  # fmt: skip
    if not np.array_equal(out, expected):
        sys.exit(f"{case} differs")
    if (pieces > 0) != (case.total > case.grain):
        sys.exit(f"{case} was run in {pieces} pieces")


def run_parts(library: ctypes.CDLL, seed: int) -> None:
    """Turn items of three numbers, which need not be neighbours.

    Raises:
        SystemExit: If the result differs from NumPy's.
    """
    random = Random(seed)
    extents = (random.choice([1, 3, 40]), random.choice([1, 5, 300]))

    def views() -> Array:
        order = random.choice([(0, 1, 2), (0, 1, 2), (2, 0, 1), (1, 2, 0), (0, 2, 1)])
        wider = random.choice([0, 0, 2])
        shape = [(*extents, 3 + wider)[axis] for axis in order]
        memory = np.random.default_rng(seed).integers(0, 50, shape).astype("float32")
        return memory.transpose(np.argsort(order))[:, :, :3]

    x, out = views(), views()
    expected = x[:, :, ::-1].copy()
    strides = [stride // 4 for array in (x, out) for stride in array.strides]
    grain = ctypes.c_int64(random.choice([7, 10**6]))
    library.turn((ctypes.c_int64 * 2)(*extents), (ctypes.c_int64 * 6)(*strides), _pointer(x), _pointer(out), grain)
    if not np.array_equal(out, expected):
        sys.exit(f"parts of seed {seed} differ")


def _pointer(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.__array_interface__["data"][0])


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    for seed in json.loads(sys.argv[2]):
        run(library, random_case(seed), wrong=sys.argv[3] == "1")
        run_parts(library, seed)


if __name__ == "__main__":
    main()
