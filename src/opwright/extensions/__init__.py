"""A user's own C++ and CUDA sources: built, found again, loaded; in a running program or by setuptools."""

from opwright.extensions.load import load
from opwright.extensions.load_inline import load_inline

__all__ = ["load", "load_inline"]
