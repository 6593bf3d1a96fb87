"""Coverage: which functions of PyTorch a type serves, which it fails, and which it gets wrong."""

from opwright.tensors.covering.measure import coverage
from opwright.tensors.covering.report import CoverageReport, Entry

__all__ = ["CoverageReport", "Entry", "coverage"]
