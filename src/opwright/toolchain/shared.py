"""What kernels share, compiled once for a cache: objects, and which of them a kernel is linked with.

See `include/opwright/once.h`: a kernel only declares what these define.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from opwright.toolchain.source import Source


@dataclass(frozen=True, slots=True)
class Shared:
    """One object.

    Attributes:
        headers: The headers whose functions it defines.
        beside: The headers of what these call, which other objects define; empty for the first object.
        called: What a kernel that calls them says.
        flags: Further flags of the compiler.
    """

    headers: tuple[str, ...]
    beside: tuple[str, ...]
    called: str
    flags: tuple[str, ...] = ()

    @property
    def source(self) -> Source:
        """What it is compiled from."""
        before = f"#define OPWRIGHT_WALKS_APART\n{_including(self.beside)}" if self.beside else ""
        defined = "#undef OPWRIGHT_ONCE\n#define OPWRIGHT_ONCE __attribute__((noinline))\n"
        return Source(f"shared_{self.headers[-1]}", f"{before}{defined}{_including(self.headers)}")


# New memory, registration and walks: every first call waits for them. Their loops over elements ask for vectors (`omp
# simd`), others go over a few operands or axes, so that -O1 is as fast, and done in half the time. The other objects
# would be slower.
_FIRST = Shared(("launch", "rows"), (), "", ("-O1",))
_OTHERS = (
    Shared(("sums",), ("operands",), "sum_of("),
    Shared(("whole_rows",), ("axes", "sums"), "for_each_whole_row("),
    Shared(("lanes",), ("whole_rows",), "in_lanes("),
    Shared(("reduce_rows",), ("axes",), "reduce_rows<"),
    Shared(("reduce_columns",), ("lanes",), "reduce_columns("),
)


def shared_by(kernels: Iterable[Source]) -> list[Shared]:
    """Return what kernels are linked with; the first is needed by all."""
    texts = [kernel.text for kernel in kernels]
    return [_FIRST, *(each for each in _OTHERS if any(each.called in text for text in texts))]


def _including(headers: Iterable[str]) -> str:
    return "".join(f'#include "opwright/{header}.h"\n' for header in headers)
