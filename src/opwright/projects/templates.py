"""Fill the templates of project files, which are the same for every operator except for names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

import jinja2

_HERE = Path(__file__).parent


def filled(folder: str, template: str, **words: str) -> str:
    """Fill `$name` and the like in a template of a folder."""
    text = (_HERE / folder / f"{template}.template").read_text(encoding="utf-8")
    return Template(text).substitute(words)


def prose(folder: str, template: str, facts: Mapping[str, Any]) -> str:
    """Write a text from a template of jinja2."""
    return _template(folder, template).render(**facts)


def code(folder: str, template: str, facts: Mapping[str, Any]) -> Any:
    """Fill a jinja2 template whose tags are on lines of their own; `str` gives its text, attributes its macros."""
    return _template(folder, template, tags_leave_no_lines=True).make_module(dict(facts))


def _template(folder: str, template: str, *, tags_leave_no_lines: bool = False) -> jinja2.Template:
    text = (_HERE / folder / f"{template}.jinja").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        trim_blocks=tags_leave_no_lines,
        lstrip_blocks=tags_leave_no_lines,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    return environment.from_string(text)
