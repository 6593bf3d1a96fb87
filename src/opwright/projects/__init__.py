"""Stand-alone projects: an operator ejected with its sources, and a template for a new one."""

from opwright.projects.ejecting import Ejected, eject
from opwright.projects.new import new_project

__all__ = ["Ejected", "eject", "new_project"]
