"""The README shows what its code prints, code on pages runs, and links lead somewhere."""

from __future__ import annotations

import ast
import importlib.util
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.suite.nights import mostly_at_night

REPOSITORY = Path(__file__).parents[1]
PAGES = sorted(
    [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md"), *(REPOSITORY / "benchmarks").glob("*.md")]
)
SITE = REPOSITORY / "docs" / "site"
RUN = sorted([REPOSITORY / "docs" / "tutorial.md", *(REPOSITORY / "docs" / "how-to").glob("*.md")])
BY_DAY = [page for page in RUN if page.name == "mixed-precision.md"]
TUTORIAL = "docs/tutorial.md"
COMMENT = re.compile(r" +#.*")  # these are translated
FOLDERS = ("how-to", "explanation", "reference", "zh")
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


@pytest.mark.seconds(400)
@pytest.mark.parametrize("page", mostly_at_night(RUN, BY_DAY), ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_code_on_pages_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPWRIGHT_STRICT", raising=False)
    command = [sys.executable, str(SITE / "blocks.py"), str(page)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def run_page_of(text: str, folder: Path) -> None:
    specification = importlib.util.spec_from_file_location("blocks", SITE / "blocks.py")
    assert specification is not None
    assert specification.loader is not None
    sys.modules["blocks"] = module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    module.run_page(page)


PRINTS = "```python\nprint('took 3.5 s')\nprint('one\\ntwo')\n```\n\n"


@pytest.mark.parametrize(
    "text",
    [
        PRINTS + "```\ntook 1.25 s\none\ntwo\n```\n",
        PRINTS + "```\ntook…\n…\n```\n",
        PRINTS + "<!-- printed -->\n\n```cpp\n…\ntwo\n```\n",
        "<!-- file: a/b.txt -->\n\n```text\nhello\n```\n\n```sh\ncat a/b.txt\n```\n\n```\nhello\n```\n",
        "<!-- not run: it needs a GPU -->\n\n```python\nraise ValueError\n```\n",
        "```python\nx = 1\n```\n\n```python\nassert x\n```\n",
    ],
)
def test_a_page_that_is_right_passes(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page_of(text, tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PRINTS + "```\ntook 3.5 min\none\ntwo\n```\n", "page.md:7: the page shows"),
        (PRINTS + "```\ntook 3.5 s\none\n```\n", "page.md:7: the page shows"),
        (PRINTS + "```\n…\nthree\n```\n", "page.md:7: the page shows"),
        ("```python\nraise ValueError('no')\n```\n", "page.md:2: ValueError: no"),
        ("text\n\n```sh\nfalse\ntrue\n```\n", "page.md:4: exit code 1"),
    ],
)
def test_a_page_that_is_wrong_fails(text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception, match=re.escape(said)):
        run_page_of(text, tmp_path)


@pytest.mark.parametrize(("page", "translated"), [("README.md", "README.zh.md"), (TUTORIAL, "docs/zh/tutorial.md")])
def test_translations_have_the_same_code(page: str, translated: str) -> None:
    texts = [(REPOSITORY / name).read_text(encoding="utf-8") for name in (page, translated)]
    code, other = (re.findall(r"^```\w*\n.*?^```$", text, flags=re.DOTALL | re.MULTILINE) for text in texts)
    assert len(code) > 2
    assert [COMMENT.sub("", each) for each in other] == [COMMENT.sub("", each) for each in code]


def test_every_page_of_a_folder_is_in_the_index() -> None:
    index = (REPOSITORY / "docs" / "README.md").read_text(encoding="utf-8")
    folders = ("how-to", "explanation", "reference", "zh")
    pages = [
        page.relative_to(REPOSITORY / "docs") for each in folders for page in (REPOSITORY / "docs" / each).glob("*.md")
    ]
    assert [str(page) for page in pages if f"]({page})" not in index] == []


def test_every_variable_of_the_environment_is_described() -> None:
    settings = (REPOSITORY / "src" / "opwright" / "settings.py").read_text(encoding="utf-8")
    texts = [node.value for node in ast.walk(ast.parse(settings)) if isinstance(node, ast.Constant)]
    read = {text for text in texts if isinstance(text, str) and re.fullmatch(r"[A-Z][A-Z_]{2,}", text)}
    page = (REPOSITORY / "docs" / "using.md").read_text(encoding="utf-8")
    assert "OPWRIGHT_STRICT" in read
    assert sorted(name for name in read if f"`{name}`" not in page) == []
