"""Files of a project that are the same for every operator but for names: templates beside this module."""

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
    text = (_HERE / folder / f"{template}.jinja").read_text(encoding="utf-8")
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False)
    return environment.from_string(text).render(**facts)
