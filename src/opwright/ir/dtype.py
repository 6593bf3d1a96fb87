"""Element types that a Program can hold."""

from __future__ import annotations

from enum import Enum


class DType(Enum):
    """An element type; the value is its name in torch and NumPy."""

    FLOAT32 = "float32"
    FLOAT64 = "float64"
    INT32 = "int32"
    INT64 = "int64"
    BOOL = "bool"

    @property
    def is_floating(self) -> bool:
        """Whether it holds real numbers."""
        return self in (DType.FLOAT32, DType.FLOAT64)

    @property
    def bytes(self) -> int:
        """Size of one element."""
        return {"float32": 4, "float64": 8, "int32": 4, "int64": 8, "bool": 1}[self.value]
