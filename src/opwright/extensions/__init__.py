"""Build and load a user's own C++ and CUDA sources, in a running program or with setuptools."""

from opwright.extensions.inline import load_inline
from opwright.extensions.loading import load

__all__ = ["load", "load_inline"]
