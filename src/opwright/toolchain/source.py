"""A source text on its way to a compiler."""

from __future__ import annotations

import re
from dataclasses import dataclass

from opwright.errors import InternalError


@dataclass(frozen=True, slots=True)
class Source:
    """A C++ translation unit.

    Attributes:
        name: A C identifier; the names of the files on disk come from it.
        text: The C++ text.
        device: CUDA C++ with the kernels that it launches, empty if there are none; None for C++ alone.
    """

    name: str
    text: str
    device: str | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", self.name):
            raise InternalError(f"the name of a source must be a C identifier, not {self.name!r}")
