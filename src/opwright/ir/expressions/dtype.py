"""Element types that a Program can hold."""

from __future__ import annotations

from enum import Enum


class DType(Enum):
    """An element type; the value is its name in torch.

    The two half types are storage types: values are converted to float32 when they are loaded.
    """

    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    COMPLEX64 = "complex64"
    COMPLEX128 = "complex128"
    UINT8 = "uint8"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    BOOL = "bool"

    @property
    def is_half(self) -> bool:
        """Whether it holds real numbers in two bytes."""
        return self in (DType.BFLOAT16, DType.FLOAT16)

    @property
    def is_floating(self) -> bool:
        """Whether it holds real numbers."""
        return self in (DType.BFLOAT16, DType.FLOAT16, DType.FLOAT32, DType.FLOAT64)

    @property
    def is_complex(self) -> bool:
        """Whether it holds complex numbers."""
        return self in (DType.COMPLEX64, DType.COMPLEX128)

    @property
    def real(self) -> DType:
        """The dtype of the real part; a real dtype is its own."""
        return {DType.COMPLEX64: DType.FLOAT32, DType.COMPLEX128: DType.FLOAT64}.get(self, self)

    @property
    def complex(self) -> DType:
        """The complex dtype whose parts have this dtype."""
        return DType.COMPLEX128 if self.real is DType.FLOAT64 else DType.COMPLEX64

    @property
    def computed(self) -> DType:
        """The dtype of arithmetic: float32 for half types."""
        return DType.FLOAT32 if self.is_half else self

    @property
    def bytes(self) -> int:
        """Size of one element."""
        return _BYTES[self]


_BYTES = {
    DType.BFLOAT16: 2,
    DType.FLOAT16: 2,
    DType.FLOAT32: 4,
    DType.FLOAT64: 8,
    DType.COMPLEX64: 8,
    DType.COMPLEX128: 16,
    DType.UINT8: 1,
    DType.INT8: 1,
    DType.INT16: 2,
    DType.INT32: 4,
    DType.INT64: 8,
    DType.BOOL: 1,
}
