"""opwright: one PyTorch function in, a finished operator out."""

from opwright.operator import Operator, operator
from opwright.samples import Sample, shapes
from opwright.version import VERSION

__all__ = ["Operator", "Sample", "operator", "shapes"]
__version__ = VERSION
