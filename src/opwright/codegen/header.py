"""The first lines of a built source: the function and the file that it comes from, and the command that shows it."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a reference is defined.

    Attributes:
        function: Its qualified name.
        file: The name of its file, without folders: a source is cached by its text, which must not depend on them.
    """

    function: str
    file: str


def built_header(name: str, origin: Origin | None, rung: str) -> str:
    """Write the comment above a built source.

    Args:
        name: The name of the Program.
        origin: Where the reference is defined; None if it is one of ours, such as a gradient.
        rung: "cpp" or "cuda".
    """
    if origin is None or not re.fullmatch(r"[\w.<>-]+", f"{origin.function}{origin.file}"):
        return f"// {name}. Written by opwright.\n"
    line = f"// {name}, from {origin.function} in {origin.file}. Written by opwright"
    command = source_command(origin.file, origin.function, rung)
    return f"{line}; formatted by\n//   {command}\n" if command else f"{line}.\n"


def source_command(file: str, function: str, rung: str) -> str | None:
    """The command that shows an emitted source; None if the command line cannot find the function."""
    if not (function.isidentifier() and file.endswith(".py")):
        return None
    return f"opwright source {file}:{function} --rung {rung}"
