"""work: the bytes and the arithmetic of a pass, and what of both the machine can do in a second, for a roofline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

import torch

from opwright.benchmark.stopwatch import Plan, interleave
from opwright.ir.contents import statements
from opwright.ir.expressions.expression import Apply, Load, nodes
from opwright.ir.expressions.integer import Integer, evaluate, symbols_of
from opwright.ir.program import Buffer, Call, Kernel, Program, TensorOperand, buffers_of, targets_of

_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm")
_LARGE = 1 << 25  # elements of float32, 128 MiB: beyond every cache
_SQUARE = 1024
_PLAN = Plan(fewest_rounds=5, most_rounds=9)


@dataclass(frozen=True, slots=True)
class Limits:
    """What the machine was measured to do, with the threads that PyTorch has.

    Attributes:
        bytes_per_second: Read and written together, of a copy of 128 MiB.
        operations_per_second: Of a product of two 1024 × 1024 matrices in float32.
    """

    bytes_per_second: float
    operations_per_second: float

    def to_json(self) -> dict[str, Any]:
        """Return it as values that `json.dumps` takes."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Work:
    """What a pass does once.

    Attributes:
        size_bytes: Read and written: each element that a step reads or writes once, whatever a cache saves.
        operations: Scalar functions, each counted as one, and the multiplications and additions of products.
    """

    size_bytes: int
    operations: int

    def __add__(self, other: Work) -> Work:
        return Work(self.size_bytes + other.size_bytes, self.operations + other.operations)


def measured_limits() -> Limits:
    """Measure the machine, which takes a second or two."""
    source, target = torch.ones(_LARGE, dtype=torch.float32), torch.empty(_LARGE, dtype=torch.float32)
    left, right = (torch.randn(_SQUARE, _SQUARE, dtype=torch.float32) for _ in range(2))
    product = torch.empty_like(left)
    thunks = {"copy": lambda: target.copy_(source), "product": lambda: torch.mm(left, right, out=product)}
    timings = interleave(thunks, plan=_PLAN)
    return Limits(2 * source.nbytes / timings["copy"].low_us * 1e6, 2 * _SQUARE**3 / timings["product"].low_us * 1e6)


def work_of(program: Program, sizes: Mapping[str, int]) -> Work | None:
    """Count the work of a Program at given sizes; None if it calls an operation whose work is not known.

    Args:
        program: The steps.
        sizes: The number for each size symbol.
    """
    buffers = buffers_of(program)
    total = Work(0, 0)
    for step in program.steps:
        if isinstance(step, Kernel):
            total += _kernel_work(step, buffers, sizes)
        elif isinstance(step, Call):
            if (found := _call_work(step, buffers, sizes)) is None:
                return None
            total += found
    return total


def _kernel_work(kernel: Kernel, buffers: Mapping[str, Buffer], sizes: Mapping[str, int]) -> Work:
    extents = {axis.name: evaluate(axis.extent, sizes) for axis in kernel.axes}
    read = {
        (node.buffer, node.indices)
        for each in statements(kernel)
        for node in nodes(each.value)
        if isinstance(node, Load)
    }
    written = {(store.buffer, store.indices) for store in kernel.stores}
    size_bytes: dict[tuple[str, bool], int] = {}
    for places, writes in ((read, False), (written, True)):
        for name, indices in places:
            touched = _elements(indices, extents) * buffers[name].dtype.bytes
            size_bytes[name, writes] = size_bytes.get((name, writes), 0) + touched
    moved = sum(min(count, _bytes(buffers[name], sizes)) for (name, _), count in size_bytes.items())
    operations = sum(isinstance(node, Apply) for each in statements(kernel) for node in nodes(each.value))
    return Work(moved, operations * prod(extents.values()))


def _elements(indices: tuple[Integer, ...], extents: Mapping[str, int]) -> int:
    """How many elements are touched: the product of the loops that an index depends on."""
    used = {name for index in indices for name in symbols_of(index)}
    return prod(extent for name, extent in extents.items() if name in used)


def _call_work(call: Call, buffers: Mapping[str, Buffer], sizes: Mapping[str, int]) -> Work | None:
    function = call.function.rpartition("::")[2]
    given = [buffers[operand.buffer] for operand in call.operands if isinstance(operand, TensorOperand)]
    if function not in _PRODUCTS or len(given) < 2:
        return None
    moved = sum(_bytes(buffer, sizes) for buffer in (*given, *targets_of(call)))
    contracted = evaluate(given[-1].shape[-2], sizes)
    return Work(moved, 2 * contracted * sum(_count(target, sizes) for target in targets_of(call)))


def _count(buffer: Buffer, sizes: Mapping[str, int]) -> int:
    return prod(evaluate(size, sizes) for size in buffer.shape)


def _bytes(buffer: Buffer, sizes: Mapping[str, int]) -> int:
    return _count(buffer, sizes) * buffer.dtype.bytes
