"""Whether everything that opwright uses is installed, and the commands that fix what is missing."""

from opwright.doctor.examining import examine
from opwright.doctor.finding import Examination, Finding

__all__ = ["Examination", "Finding", "examine"]
