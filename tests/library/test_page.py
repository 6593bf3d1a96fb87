"""docs/library.md shows all ready operators, and their figures; none is below 1."""

import json
from pathlib import Path

import pytest

import opwright.library
from opwright.library.samples import MEASURED
from tests.library.page import page

DOCS = Path(__file__).parents[2] / "docs"
RECORD = json.loads((DOCS / "library.json").read_text(encoding="utf-8"))


def test_all_operators_are_measured():
    assert sorted(RECORD) == sorted(opwright.library.__all__)


@pytest.mark.parametrize("name", sorted(RECORD))
def test_none_is_slower_than_eager_or_compiled(name):
    sizes = RECORD[name]["sizes"]
    assert sorted(sizes) == sorted(MEASURED)
    assert min(sizes[size][f"{which} ×"] for size in MEASURED for which in ("forward", "both")) >= 1.0
    for figures in sizes.values():
        for which in ("forward", "both"):
            peers = [figures[f"{which}, {peer}"] for peer in ("eager", "compile") if f"{which}, {peer}" in figures]
            assert figures[f"{which} ×"] == pytest.approx(min(peers) / figures[f"{which}, opwright"], rel=2e-3)


def test_the_page_is_of_these_figures(request):
    text, file = page(RECORD), DOCS / "library.md"
    if request.config.getoption("--update-golden"):
        file.write_text(text, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text, "see pytest --update-golden"
