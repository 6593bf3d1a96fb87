"""Start another Python with the modules of this process, unless this process is not a plain Python."""

from __future__ import annotations

import os
import re
import sys
from importlib.machinery import PathFinder
from pathlib import Path

# Applications that carry a Python within them name themselves here: to start them would open their windows again.
_PYTHON = re.compile(r"(python|pypy)w?[\d.]*(t|d|td|-dbg)?(\.exe)?", re.IGNORECASE)
_OURS = ("opwright", "torch")


def can_start_python() -> bool:
    """Whether `sys.executable` is a Python: not in frozen applications, nor where a program has one embedded."""
    if getattr(sys, "frozen", False) or hasattr(sys, "_MEIPASS") or "__compiled__" in vars(sys.modules["opwright"]):
        return False
    executable = sys.executable or ""
    return bool(_PYTHON.fullmatch(os.path.basename(executable))) and os.access(executable, os.X_OK)


def python_command(statement: str) -> tuple[str, ...]:
    """Return the command that runs a statement in a new Python, which finds the opwright and the torch of this one.

    The folder that it is started in is not searched for modules (-P): a file `torch.py` may lie there.
    """
    return (sys.executable, "-P", "-c", f"import sys; sys.path[:] = {_search_path()!r}; {statement}")


def _search_path() -> list[str]:
    """Where this process finds modules, without folders that hold another opwright or torch.

    Relative paths are left out: they depend on a working directory that may have changed since.
    """
    homes = {name: _home(name) for name in _OURS}
    entries = [entry for entry in sys.path if os.path.isabs(entry)]
    kept = [entry for entry in entries if not any(_holds_another(entry, *each) for each in homes.items())]
    return list(dict.fromkeys([*kept, *homes.values()]))


def _home(name: str) -> str:
    """The folder that holds a package of this process."""
    return str(Path(str(sys.modules[name].__file__)).parents[1].absolute())


def _holds_another(entry: str, name: str, home: str) -> bool:
    found = PathFinder.find_spec(name, [entry])
    return found is not None and os.path.realpath(entry) != os.path.realpath(home)
