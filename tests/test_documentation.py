"""The README shows what its code prints, and links lead somewhere."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PAGES = sorted(
    [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md"), *(REPOSITORY / "benchmarks").glob("*.md")]
)
FIGURE = re.compile(r"\d\.\de-\d\d")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    assert [link for link in links if not (page.parent / link.partition("#")[0]).exists()] == []


def test_every_page_is_in_the_index() -> None:
    index = (REPOSITORY / "docs" / "README.md").read_text(encoding="utf-8")
    missing = [page.name for page in (REPOSITORY / "docs").glob("*.md") if f"]({page.name})" not in index]
    assert missing == ["README.md"]


def test_the_readme_shows_what_its_code_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    code, shown = re.findall(r"```\w*\n(.*?)```", readme, flags=re.DOTALL)[:2]
    file = tmp_path / "example.py"
    file.write_text(code, encoding="utf-8")
    runpy.run_path(str(file))
    printed = [FIGURE.sub("#", line).strip() for line in capsys.readouterr().out.splitlines()]
    expected = [FIGURE.sub("#", line).strip() for line in shown.splitlines() if line.strip() != "..."]

    assert len(expected) > 5
    assert printed[: len(expected)] == expected
