"""Judge an operator, or any callable, against the function it stands for."""

from opwright.checking.judge import check
from opwright.checking.verdict import Row, Verdict

__all__ = ["Row", "Verdict", "check"]
