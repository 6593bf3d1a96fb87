"""Tensor types: a kit for those who write them."""

from opwright.tensors.covering import CoverageReport, coverage
from opwright.tensors.like.base import Like
from opwright.tensors.logging.log import log
from opwright.tensors.logging.logged import Logging
from opwright.tensors.ranking import PrecedenceReport, precedence
from opwright.tensors.wrapper.base import Wrapper

__all__ = ["CoverageReport", "Like", "Logging", "PrecedenceReport", "Wrapper", "coverage", "log", "precedence"]
