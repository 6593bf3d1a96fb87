"""Test an operator under PyTorch's transforms, modes and tools, row by row, against its reference."""

from opwright.auditing.examine import audit
from opwright.auditing.options import Options
from opwright.auditing.scorecard import Row, Scorecard

__all__ = ["Options", "Row", "Scorecard", "audit"]
