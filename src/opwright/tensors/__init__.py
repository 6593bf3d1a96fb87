"""Tensor types: a kit for those who write them."""

from opwright.tensors.coverage import CoverageReport, coverage
from opwright.tensors.like.base import Like
from opwright.tensors.precedence import PrecedenceReport, precedence

__all__ = ["CoverageReport", "Like", "PrecedenceReport", "coverage", "precedence"]
