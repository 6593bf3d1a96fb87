"""Judge what PyTorch can do to an operator, row by row, against the same done to the function it stands for."""

from opwright.auditing.examine import audit
from opwright.auditing.options import Options
from opwright.auditing.scorecard import Row, Scorecard

__all__ = ["Options", "Row", "Scorecard", "audit"]
