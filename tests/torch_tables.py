"""PyTorch's own tables of operations and modules need a package that only its tests use."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import types
import unittest
from typing import Any


def stand_in_for_expecttest() -> None:
    """Put an empty package in its place where it is not installed."""
    name = "expecttest"
    if name in sys.modules or importlib.util.find_spec(name) is not None:
        return
    stand_in: Any = types.ModuleType(name)
    stand_in.__spec__ = importlib.machinery.ModuleSpec(name, None)
    stand_in.TestCase = unittest.TestCase
    sys.modules[name] = stand_in
