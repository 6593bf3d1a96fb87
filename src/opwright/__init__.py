"""opwright: one PyTorch function in, a finished operator out."""

from opwright.operator import Operator, operator
from opwright.samples import Sample, shapes

__all__ = ["Operator", "Sample", "operator", "shapes"]
__version__ = "0.1.0"
