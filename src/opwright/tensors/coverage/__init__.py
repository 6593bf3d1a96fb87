"""Coverage: which functions of PyTorch a type serves, which it fails, and which it gets wrong."""

from opwright.tensors.coverage.measure import coverage
from opwright.tensors.coverage.report import CoverageReport, Entry

__all__ = ["CoverageReport", "Entry", "coverage"]
