"""A user's own C++ and CUDA sources: built, found again, loaded; in a running program or by setuptools."""

from opwright.extensions.inline import load_inline
from opwright.extensions.loading import load

__all__ = ["load", "load_inline"]
