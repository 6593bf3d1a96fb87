"""A kit for types that act like tensors: wrappers around tensors, with metadata that travels."""

from opwright.tensors.wrapper.base import Wrapper

__all__ = ["Wrapper"]
