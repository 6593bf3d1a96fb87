"""Tables: the addresses of many tensors for one kernel, see include/opwright/table.h."""

from __future__ import annotations

import ctypes
import itertools
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from opwright.optim.definition import FACTOR, STEP
from opwright.optim.serving.entries import Entry
from opwright.optim.serving.kernels import Variant
from opwright.optim.serving.skips import Skip

_ADDRESS = ctypes.c_void_p
_PIECE = 4096  # elements that are reduced together
_DEVICE_TYPES = {"cpu": 0, "cuda": 1}  # the numbers of torch


class _Layout(ctypes.Structure):
    """`Table` of the header."""

    _fields_ = (
        ("count", ctypes.c_int64),
        ("columns", _ADDRESS),
        ("starts", _ADDRESS),
        ("rows", _ADDRESS),
        ("numbers", _ADDRESS),
        ("width", ctypes.c_int64),
        ("steps", _ADDRESS),
        ("kept", _ADDRESS),
        ("served", _ADDRESS),
        ("seed", ctypes.c_uint64),
        ("piece", ctypes.c_int64),
        ("pieces", _ADDRESS),
        ("totals", _ADDRESS),
        ("step_bytes", ctypes.c_int64),
        ("skip", _ADDRESS),
        ("shapes", _ADDRESS),
        ("device_type", ctypes.c_int64),
        ("device_index", ctypes.c_int64),
    )


def _in_words(count: int) -> int:
    """Bytes, rounded up to words, of which there is at least one."""
    return count + 8 - count % 8


def _place(entry: Entry, name: str) -> int:
    """The address of an operand; those of a gradient and of its factor are given at each step."""
    return 0 if name in ("grad", FACTOR) else entry.tensors[name].data_ptr()


def _shape(entry: Entry, name: str) -> tuple[int, ...]:
    """The sizes and strides of an operand; a gradient lies as its parameter does, unless it is copied."""
    if name == FACTOR:
        return ()
    tensor = entry.tensors["param" if name == "grad" and not entry.copied else name]
    return (*tensor.shape, *tensor.stride())


def _index(device: torch.device) -> int:
    """Of a GPU; -1 for the processor."""
    if device.type == "cpu":
        return -1
    return torch.cuda.current_device() if device.index is None else device.index


class TensorTable:
    """Tensors that one kernel updates in one launch.

    Args:
        variant: The kernel.
        entries: The parameters, which count steps in one dtype; their tensors keep their addresses, except gradients.
    """

    def __init__(self, variant: Variant, entries: Sequence[Entry]) -> None:
        self._variant = variant
        self._count = count = len(entries)
        groups = list(dict.fromkeys(entry.group for entry in entries))
        self._groups = groups
        self._columns = {name: array("q", [_place(entry, name) for entry in entries]) for name in variant.operands}
        self._places = array("q", [column.buffer_info()[0] for column in self._columns.values()])
        counts = [entry.tensors["param"].numel() for entry in entries]
        pieces = [-(-elements // _PIECE) if variant.reduced_bytes else 0 for elements in counts]
        self._starts = array("q", itertools.accumulate(counts, initial=0))
        self._pieces = array("q", itertools.accumulate(pieces, initial=0))
        self._totals = array("q", bytes(_in_words(variant.reduced_bytes * (count + self._pieces[-1]))))
        self._rows = array("q", [groups.index(entry.group) for entry in entries])
        self._numbers = array("d", bytes(8 * max(1, len(groups) * len(variant.numbers))))
        self._steps = array("q", [entry.state[STEP].data_ptr() for entry in entries])
        self._kept = array("q", bytes(_in_words(variant.bytes * count)))
        self._served = array("B", bytes(count))
        self._device = entries[0].param.device
        named = variant.operands if variant.one_by_one else ()
        self._shapes = [array("q", [size for entry in entries for size in _shape(entry, name)]) for name in named]
        self._shape_places = array("q", [shapes.buffer_info()[0] for shapes in self._shapes] or [0])
        self._layout = _Layout(
            count,
            *(part.buffer_info()[0] for part in (self._places, self._starts, self._rows, self._numbers)),
            len(variant.numbers),
            *(part.buffer_info()[0] for part in (self._steps, self._kept, self._served)),
            0,
            _PIECE,
            *(part.buffer_info()[0] for part in (self._pieces, self._totals)),
            entries[0].state[STEP].element_size(),
            None,
            self._shape_places.buffer_info()[0],
            _DEVICE_TYPES[self._device.type],
            _index(self._device),
        )
        self._address = ctypes.addressof(self._layout)

    def run(
        self, gradients: Sequence[int], numbers: Sequence[Mapping[str, Any]], seed: int, skip: Skip | None = None
    ) -> list[int]:
        """Update all tensors, or none, and one by one those that can be; returns the positions of those that are left.

        Args:
            gradients: Their addresses.
            numbers: For each group, its hyper-parameters by name; the factor of gradients may be a tensor.
            seed: Of random rounding.
            skip: Whether a kernel of a GPU changes nothing.
        """
        self._columns["grad"][:] = array("q", gradients)
        if FACTOR in self._columns:
            self._columns[FACTOR][:] = array("q", [numbers[0][FACTOR].data_ptr()] * self._count)
        skipped = None if skip is None else skip.on(self._device)  # kept until it is launched
        self._layout.skip = None if skipped is None else skipped.data_ptr()
        names = self._variant.numbers
        self._numbers[:] = array("d", [numbers[group][name] for group in self._groups for name in names] or [0.0])
        self._layout.seed = seed
        if not self._variant.run(self._address):
            if self._variant.launch is not None:
                self._variant.launch(self._address, self._on_device(), self._room_for_totals())
            return []
        return [position for position, served in enumerate(self._served) if not served]

    def _on_device(self) -> torch.Tensor:
        """A copy of the table where a kernel of a GPU reads it, see include/opwright/cuda/table_launch.h.

        It goes through memory that PyTorch keeps until the copy is done, so that nothing waits for the GPU.
        """
        parts = (*self._columns.values(), self._starts, self._pieces, self._kept)
        table = torch.frombuffer(bytearray(b"".join(parts)), dtype=torch.uint8)
        return table if self._device.type == "cpu" else table.pin_memory().to(self._device, non_blocking=True)

    def _room_for_totals(self) -> torch.Tensor:
        """Memory for what a kernel of a GPU reduces."""
        return torch.empty(len(self._totals), dtype=torch.int64, device=self._device)
