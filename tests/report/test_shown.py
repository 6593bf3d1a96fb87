"""Texts at a prompt and in a notebook."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from opwright.report.shown import Page

SOURCE = "// a < b\nint answer() { return 42; }"


@pytest.mark.parametrize("language", ["text", "cpp", "python"])
def test_a_page_is_its_text(language: str) -> None:
    page = Page(SOURCE, language)
    assert isinstance(page, str)
    assert (page, repr(page), json.loads(json.dumps(page))) == (SOURCE, SOURCE, SOURCE)
    assert copy.deepcopy(page) == pickle.loads(pickle.dumps(page)) == SOURCE


def test_a_notebook_shows_code_in_colours_and_no_background() -> None:
    shown = Page(SOURCE, "cpp")._repr_html_()
    assert shown.startswith("<pre")
    assert "// a &lt; b" in shown
    assert "color: " in shown
    assert "background" not in shown
    assert "color: " not in Page(SOURCE)._repr_html_()


def test_an_empty_page_is_shown() -> None:
    assert Page("")._repr_html_().startswith("<pre")
