"""Whether everything that opwright uses is here, and the commands that mend what is not."""

from opwright.doctor.examine import examine
from opwright.doctor.finding import Examination, Finding

__all__ = ["Examination", "Finding", "examine"]
