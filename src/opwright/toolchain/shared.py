"""What kernels share, compiled once for a cache: objects, and which of them a kernel is linked with.

See `include/opwright/once.h`: a kernel only declares what these define.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from opwright.toolchain.source import Source


@dataclass(frozen=True, slots=True)
class _Shared:
    """One object.

    Attributes:
        header: The header whose functions it defines.
        beside: The header of what these call, which the object of walks defines; None for that object itself.
        called: What a kernel that calls them says.
    """

    header: str
    beside: str | None
    called: str

    @property
    def source(self) -> Source:
        before = f'#define OPWRIGHT_WALKS_APART\n#include "opwright/{self.beside}.h"\n' if self.beside else ""
        defined = "#undef OPWRIGHT_ONCE\n#define OPWRIGHT_ONCE __attribute__((noinline))\n"
        return Source(f"shared_{self.header}", f'{before}{defined}#include "opwright/{self.header}.h"\n')


_WALKS = _Shared("rows", None, "")
_OTHERS = (
    _Shared("whole_rows", "axes", "for_each_whole_row("),
    _Shared("lanes", "whole_rows", "in_lanes("),
    _Shared("reduce_rows", "axes", "reduce_rows<"),
    _Shared("reduce_columns", "lanes", "reduce_columns("),
)


def shared_by(kernels: Iterable[Source]) -> list[Source]:
    """Return the sources of what kernels are linked with; the first is needed by all."""
    texts = [kernel.text for kernel in kernels]
    return [_WALKS.source, *(each.source for each in _OTHERS if any(each.called in text for text in texts))]
