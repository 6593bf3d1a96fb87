"""Pages: what a report says, as a page in Markdown.

JSON of a `CoverageReport` ─→ remarks, alike ones together ─→ tables
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_MOST_ALIKE = 12
_FAULTS = (
    # (heading, what of an entry says it)
    ("Wrong", "detail"),
    ("Spellings that disagree", "disagrees"),
    ("Arguments that are not taken", "signature"),
)
_LISTS = (("Handled", "handled"), ("By rule", "by rule"), ("Fallback", "fallback"), ("Not tried", "not tried"))
_LONGEST = 120
_OVERLOAD = re.compile(r"<OpOverload\(op='(\S+?)', overload='(\w+)'\)>")
_OPERATION = re.compile(r"(?:torch\._ops\.)?aten(?:\.|::)\w+(?:\.\w+)?")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+|\b0x[0-9a-f]+")
_RAGGED = re.compile(r"\bj\d+\b")  # sizes of nested tensors, which are counted

Entries = Sequence[Mapping[str, Any]]


def page_of(report: Mapping[str, Any], title: str, preface: str, why: Mapping[str, str]) -> str:
    """The text of the page; `CoverageReport.page` says what is on it."""
    counts: Mapping[str, int] = report["counts"]
    lines = [f"# {title}", "", *([preface, ""] if preface else [])]
    lines += ["| " + " | ".join(counts) + " |", "|" + "---|" * len(counts)]
    lines += ["| " + " | ".join(map(str, counts.values())) + " |", ""]
    for heading, key in _FAULTS:
        lines += _table(heading, [(each["name"], each[key]) for each in _saying(report["entries"], key)], why)
    failing = [(each["name"], each["detail"]) for each in report["entries"] if each["how"] == "fails"]
    lines += _table("Fails", failing, {})
    for heading, how in _LISTS:
        names = [each["name"] for each in report["entries"] if each["how"] == how]
        lines += [f"## {heading}", "", ", ".join(f"`{name}`" for name in names), ""] if names else []
    return "\n".join(lines).rstrip() + "\n"


def unexplained(report: Mapping[str, Any], why: Mapping[str, str]) -> list[str]:
    """What a report says of faults for which there is no reason."""
    said = [(each["name"], each[key]) for _, key in _FAULTS for each in _saying(report["entries"], key)]
    return [f"{name}: {text}" for name, text in said if not _reason(name, text, why)]


def _saying(entries: Entries, key: str) -> Iterator[Mapping[str, Any]]:
    """The entries with a remark of a kind: details are those of failures too."""
    for entry in entries:
        if entry["how"] == "wrong" if key == "detail" else entry[key]:
            yield entry


def _reason(name: str, text: str, why: Mapping[str, str]) -> str:
    return next((reason for pattern, reason in why.items() if re.search(pattern, f"{name}: {text}")), "")


def _table(heading: str, said: Sequence[tuple[str, str]], why: Mapping[str, str]) -> list[str]:
    """Functions by what is said of them, and why, the largest group first."""
    if not said:
        return []
    texts: dict[str, list[str]] = {}
    groups: dict[tuple[str, str], list[str]] = {}
    for name, text in said:
        reason, short = _reason(name, text, why), _without(name, text)
        alike = texts.setdefault(reason or short, [])
        alike += [] if short in alike else [short]
        groups.setdefault((alike[0], reason), []).append(name)
    with_reasons = any(reason for _, reason in groups)
    lines = [f"## {heading}", "", "| what | functions | why |" if with_reasons else "| what | functions |"]
    lines.append("|---|---|---|" if with_reasons else "|---|---|")
    for (text, reason), names in sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        shown = ", ".join(f"`{name}`" for name in names[:_MOST_ALIKE])
        more = f" and {len(names) - _MOST_ALIKE} more" if len(names) > _MOST_ALIKE else ""
        others = " (and alike)" if len(texts[reason or text]) > 1 else ""
        cells = [f"{_cell(text)}{others}", f"{shown}{more}", *([reason] if with_reasons else [])]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _without(name: str, text: str) -> str:
    """A remark without what differs between alike ones: names of operations, the function's own, and addresses."""
    text = _OVERLOAD.sub(r"\1.\2", " ".join(text.split()))
    text = _ADDRESS.sub("", _RAGGED.sub("j…", _OPERATION.sub("aten.…", text)))
    last = name.split(".")[1] if name.startswith("aten.") else name.removesuffix(".__get__").rpartition(".")[2]
    for own in (name, last):
        text = re.sub(rf"(?<!\w){re.escape(own)}(?!\w)", "…", text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rpartition(' ')[0]} …"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")
