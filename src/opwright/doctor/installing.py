"""The command that installs a system package, with the package manager of this machine."""

from __future__ import annotations

import shutil

# The command of each package manager, and its names for g++ and the headers of Python.
_MANAGERS = {
    "apt-get": ("sudo apt-get install", {"compiler": "g++", "python headers": "python3-dev"}),
    "dnf": ("sudo dnf install", {"compiler": "gcc-c++", "python headers": "python3-devel"}),
    "pacman": ("sudo pacman -S", {"compiler": "gcc", "python headers": "python"}),
    "apk": ("sudo apk add", {"compiler": "g++", "python headers": "python3-dev"}),
    "conda": ("conda install", {"compiler": "gxx", "python headers": "python"}),
}


def installing(what: str) -> str | None:
    """Return the command that installs a compiler or Python's headers; None without a known package manager."""
    for manager, (command, names) in _MANAGERS.items():
        if shutil.which(manager):
            return f"{command} {names[what]}"
    return None
