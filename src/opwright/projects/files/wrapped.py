"""Wrap long lines of Python."""

from __future__ import annotations

WIDTH = 120
_INDENT = "    "


def wrapped(line: str) -> str:
    """Break a line that is too wide inside its first parentheses."""
    if len(line) <= WIDTH or "(" not in line:
        return line
    start, depth = line.index("("), 0
    for end in range(start, len(line)):
        depth += {"(": 1, ")": -1}.get(line[end], 0)
        if depth == 0:
            break
    indent = line[: len(line) - len(line.lstrip())]
    return f"{line[: start + 1]}\n{indent}{_INDENT}{line[start + 1 : end]}\n{indent}{line[end:]}"
