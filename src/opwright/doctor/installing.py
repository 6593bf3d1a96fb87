"""The command that installs something of the system, with the package manager that is here."""

from __future__ import annotations

import shutil

# What each manager is told, and what it calls g++ and the headers of Python.
_MANAGERS = {
    "apt-get": ("sudo apt-get install", {"compiler": "g++", "python headers": "python3-dev"}),
    "dnf": ("sudo dnf install", {"compiler": "gcc-c++", "python headers": "python3-devel"}),
    "pacman": ("sudo pacman -S", {"compiler": "gcc", "python headers": "python"}),
    "apk": ("sudo apk add", {"compiler": "g++", "python headers": "python3-dev"}),
    "conda": ("conda install", {"compiler": "gxx", "python headers": "python"}),
}


def installing(what: str) -> str | None:
    """Return the command that installs a compiler or Python's headers; None where no known manager is here."""
    for manager, (command, names) in _MANAGERS.items():
        if shutil.which(manager):
            return f"{command} {names[what]}"
    return None
