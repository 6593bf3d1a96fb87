"""Test an operator, or any callable, against its reference."""

from opwright.checking.judge import check
from opwright.checking.verdict import Row, Verdict

__all__ = ["Row", "Verdict", "check"]
