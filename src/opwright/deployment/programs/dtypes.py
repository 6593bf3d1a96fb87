"""Dtypes as C++ spells them."""

import torch

ATEN_DTYPES = {
    torch.float32: "at::kFloat", torch.float64: "at::kDouble", torch.bfloat16: "at::kBFloat16",
    torch.float16: "at::kHalf", torch.int64: "at::kLong", torch.int32: "at::kInt", torch.int16: "at::kShort",
    torch.int8: "at::kChar", torch.uint8: "at::kByte", torch.bool: "at::kBool",
    torch.complex64: "at::kComplexFloat", torch.complex128: "at::kComplexDouble",
}  # fmt: skip
"""The constant of ATen for each dtype that a program in C++ takes."""
