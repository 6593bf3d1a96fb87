"""Guard zones: memory before and after the results of a kernel, checked after the call."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch

from opwright.errors import Place, ResultOverrun
from opwright.handwritten.kernels.layout import Layout, empty

ZONE_BYTES = 4096
_MARK = 0xA5


class Zones:
    """Allocates the results of one call between guard zones."""

    def __init__(self) -> None:
        self._whole: list[tuple[torch.Tensor, int]] = []

    def empty(self, sizes: tuple[int, ...], dtype: torch.dtype, device: torch.device, layout: Layout) -> torch.Tensor:
        """Allocate a result."""
        strides = empty(sizes, dtype, torch.device("meta"), layout).stride()
        count = math.prod(sizes)
        whole = torch.full((ZONE_BYTES + count * dtype.itemsize + ZONE_BYTES,), _MARK, dtype=torch.uint8, device=device)
        self._whole.append((whole, count * dtype.itemsize))
        inside = torch.empty(0, dtype=dtype, device=device)  # a view of `whole` could not be changed in place later
        return inside.set_(whole.untyped_storage(), ZONE_BYTES // dtype.itemsize, sizes, strides)

    def check(self, results: Iterable[str], function: str, place: Place) -> None:
        """Check the zones.

        Args:
            results: The names and tensors that were allocated, in order.
            function: The kernel.
            place: Where it is defined.

        Raises:
            ResultOverrun: If one has changed.
        """
        for name, (whole, length) in zip(results, self._whole, strict=True):
            zones = {"before the first": whole[:ZONE_BYTES].flip(0), "behind the last": whole[ZONE_BYTES + length :]}
            for where, zone in zones.items():
                changed = (zone != _MARK).nonzero()
                if len(changed):
                    furthest = int(changed.max()) + 1
                    raise ResultOverrun(
                        f"{function} wrote up to {furthest} bytes {where} element of '{name}'",
                        place=place,
                        hint="compare its loops with the number of elements that it is given",
                    )
