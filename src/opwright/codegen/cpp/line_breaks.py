"""broken: C++ → the same with lines of at most 120 columns.

A line breaks where the fewest brackets are open, after a comma or else the loosest operator, as late as possible; the
rest is indented by four more columns.
"""

from __future__ import annotations

import re
from itertools import accumulate, takewhile

MOST_COLUMNS = 120
_INDENT = "    "
_STRING = re.compile(r'"(?:\\.|[^"\\])*"')
# Where a line may break, the loosest first; binary operators have a space on both sides.
_OPERATORS = (",|;", r" (?:&&|\|\|)", r" [?:]", r" (?:[<>]=?|[!=]=)", r" [&|^]", r" [+-]", r" [*/%]", " .?=")
_BEHIND = tuple(re.compile(rf"(?:{operator})(?= )") for operator in _OPERATORS)


def broken(text: str) -> str:
    """Break the long lines of a text."""
    return "\n".join(
        part for line in text.split("\n") for part in ([line] if len(line) <= MOST_COLUMNS else _parts(line))
    )


def _parts(line: str) -> list[str]:
    indent = line[: len(line) - len(line.lstrip())]
    if line.lstrip().startswith("//"):
        return _filled(line, f"{indent}//   ", "")
    if line.lstrip().startswith("#"):
        return _filled(line, f"{indent}{_INDENT}", " \\")
    return _filled(line, indent + _INDENT, "")


def _filled(line: str, continuation: str, end: str) -> list[str]:
    """Fill lines one after another; each but the last ends in `end`."""
    lines = []
    while len(line) > MOST_COLUMNS:
        place = _place(line, MOST_COLUMNS - len(end))
        if place is None or len(line) - place + len(continuation) >= len(line):
            break
        lines.append(line[:place].rstrip() + end)
        line = continuation + line[place:].lstrip()
    return [*lines, line]


def _place(line: str, most: int) -> int | None:
    """Where to break a line so that the first part has at most so many columns."""
    begin = len(line) - len(line.lstrip())
    if line[begin:].startswith(("//", "#")):
        found = line.rfind(" ", begin + 3, most + 1)
        return None if found < 0 else found
    strings = list(takewhile(lambda span: span[0] <= most, (match.span() for match in _STRING.finditer(line))))
    depths = list(accumulate(_depth(line[: most + 2], strings)))
    outside = [
        match.start()
        for match in re.finditer(" ", line[: most + 1])
        if match.start() > begin and not any(first < match.start() < last for first, last in strings)
    ]
    looseness = {match.end(): level for level, each in enumerate(_BEHIND) for match in each.finditer(line, 0, most + 2)}
    places = [place for place in outside if place in looseness] or outside
    return min(places, key=lambda place: (depths[place], looseness.get(place, 0), -place), default=None)


def _depth(line: str, strings: list[tuple[int, int]]) -> list[int]:
    """How many brackets open or close at each character; those of templates stand right behind a name."""
    depth = [(sign in "([{") - (sign in ")]}") for sign in line]
    for match in re.finditer(r"(?<=\w)<|(?<=[\w*&>])>(?!=)", line):
        depth[match.start()] = 1 if match[0] == "<" else -1
    for first, last in strings:
        depth[first:last] = [0] * len(depth[first:last])
    return depth
