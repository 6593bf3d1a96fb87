"""Tensor types: a kit for those who write them."""

from opwright.tensors.like.base import Like

__all__ = ["Like"]
