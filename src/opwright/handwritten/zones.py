"""Guard zones: memory before and behind the results of a kernel, looked at after the call."""

from __future__ import annotations

import torch

from opwright.errors import Place, ResultOverrun
from opwright.handwritten.layout import Layout, empty

ZONE_BYTES = 4096
_MARK = 0xA5


class Zones:
    """New memory for the results of one call.

    Args:
        wanted: Whether to put zones around them.
    """

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted
        self._whole: dict[str, tuple[torch.Tensor, int]] = {}

    def allocate(
        self, name: str, sizes: tuple[int, ...], dtype: torch.dtype, device: torch.device, layout: Layout
    ) -> torch.Tensor:
        """Memory for a result."""
        if not self._wanted:
            return empty(sizes, dtype, device, layout)
        strides = empty(sizes, dtype, torch.device("meta"), layout).stride()
        count = _count(sizes)
        whole = torch.full((ZONE_BYTES + count * dtype.itemsize + ZONE_BYTES,), _MARK, dtype=torch.uint8, device=device)
        self._whole[name] = (whole, count * dtype.itemsize)
        inside = whole[ZONE_BYTES : ZONE_BYTES + count * dtype.itemsize].view(dtype)
        return inside.as_strided(sizes, strides)

    def check(self, function: str, place: Place) -> None:
        """Look at the zones.

        Raises:
            ResultOverrun: If one has changed.
        """
        for name, (whole, length) in self._whole.items():
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


def _count(sizes: tuple[int, ...]) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count
