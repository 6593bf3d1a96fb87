"""The interpreter that opwright runs in: the main one of its process."""

from __future__ import annotations

import importlib

from opwright.errors import InterpreterUnsupported

# What asks which interpreter this is: Python's own module, under its names of 3.13 and before.
_ASKED = ("_interpreters", "_xxsubinterpreters")


def refuse_subinterpreters() -> None:
    """Refuse the import in a subinterpreter, which would share PyTorch's state with others.

    Raises:
        InterpreterUnsupported: This is not the main interpreter.
    """
    if not _is_main():
        raise InterpreterUnsupported(
            "opwright cannot be imported in a subinterpreter: PyTorch has one state for all interpreters of a process",
            hint="import it in the main interpreter, or start processes instead, as multiprocessing does",
        )


def _is_main() -> bool:
    for name in _ASKED:
        try:
            asked = importlib.import_module(name)
        except ImportError:
            continue
        return bool(asked.get_current() == asked.get_main())
    return True  # a Python without subinterpreters
