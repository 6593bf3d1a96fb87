"""python_headers: whether Python modules such as the hot path can be compiled."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from opwright.doctor.finding import Finding
from opwright.doctor.installing import installing
from opwright.settings import Settings


def python_headers(settings: Settings) -> Finding:
    """Look for Python.h."""
    folder = Path(sysconfig.get_path("include"))
    if (folder / "Python.h").exists():
        return Finding("Python headers", "works", str(folder))
    missing = f"there is no {folder / 'Python.h'}; calls go through Python, and opwright.load builds no modules"
    return Finding("Python headers", "limited", missing, installing("python headers"))
