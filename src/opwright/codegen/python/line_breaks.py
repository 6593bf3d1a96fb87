"""Break long lines of Python inside brackets: at the loosest operator, else between arguments."""

from __future__ import annotations

import re
from itertools import accumulate

from opwright.codegen.placeholders import columns

MOST_COLUMNS = 120
_INDENT = "    "
# Loosest first; an operator outside of brackets has a space on both sides.
_OPERATORS = (r"(?:<|<=|>|>=|==|!=)", r"\|", r"\^", "&", r"[+-]", r"[*/]")


def reduce_assignment(names: str, value: str, indent: str) -> list[str]:
    """Write `names = value`, on several lines if it is long."""
    if columns(f"{indent}{names} = {value}") <= MOST_COLUMNS:
        return [f"{indent}{names} = {value}"]
    if len(_operator_pieces(value)) > 1:
        return [f"{indent}{names} = (", *_reduce(value, indent + _INDENT), f"{indent})"]
    first, *rest = _reduce(value, indent, taken=columns(names) + 3)
    return [f"{indent}{names} = {first.strip()}", *rest]


def _reduce(text: str, indent: str, taken: int = 0) -> list[str]:
    """Break text that stands inside brackets, or that ends with a bracket of its own."""
    if len(indent) + columns(text) + taken < MOST_COLUMNS:  # one column is left for a comma
        return [indent + text]
    pieces = _operator_pieces(text)
    if len(pieces) > 1:
        return [line for piece in pieces for line in _reduce(piece, indent)]
    opened = _last_group(text)
    if opened is None:
        return [indent + text]
    begin, end = opened
    inner = indent + _INDENT
    members = _split(text[begin + 1 : end], r",\s", keep=False)
    makes_tuple = text[begin] == "[" if _is_behind_a_value(text, begin) else text[begin] == "("
    trailing = "" if len(members) == 1 and makes_tuple else ","
    lines = [line for member in members for line in _with_comma(_reduce(member, inner), trailing)]
    return [indent + text[: begin + 1], *lines, indent + text[end:]]


def _is_behind_a_value(text: str, begin: int) -> bool:
    """Whether a bracket calls or subscripts what is before it."""
    return begin > 0 and (text[begin - 1].isalnum() or text[begin - 1] in "_])")


def _with_comma(lines: list[str], comma: str) -> list[str]:
    return [*lines[:-1], lines[-1] + comma]


def _operator_pieces(text: str) -> list[str]:
    for operator in _OPERATORS:
        pieces = _split(text, rf"\s(?={operator}\s)", keep=True)
        if len(pieces) > 1:
            return pieces
    return [text]


def _split(text: str, separator: str, keep: bool) -> list[str]:
    """Split outside of brackets; `keep` leaves what the separator looks ahead to at the head of each piece."""
    depths = _depths(text)
    pieces: list[str] = []
    begin = 0
    for match in re.finditer(separator, text):
        if depths[match.start()] == 0 and (not keep or match.start() > begin):
            pieces.append(text[begin : match.start()])
            begin = match.end()
    return [*pieces, text[begin:]]


def _last_group(text: str) -> tuple[int, int] | None:
    """The bracket pair with the longest text inside, among the outermost ones."""
    depths = _depths(text)
    begins = [n for n, sign in enumerate(text) if sign in "([" and depths[n] == 1]
    ends = [n for n, sign in enumerate(text) if sign in ")]" and depths[n] == 0]
    return max(zip(begins, ends, strict=True), key=lambda pair: pair[1] - pair[0], default=None)


def _depths(text: str) -> list[int]:
    """How many brackets are open after each character."""
    return list(accumulate((sign in "([") - (sign in ")]") for sign in text))
