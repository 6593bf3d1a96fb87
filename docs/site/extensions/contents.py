"""contents: the site's table of contents, read off the index that readers of the repository see.

Every section of docs/README.md becomes a caption, with the pages that it links to below it. On other pages, the comment
`<!-- pages: decisions/0*.md -->` becomes a list of the pages that match. A link to the sources of the gallery leads to
the gallery that the build made of them; the list of files in its header is for readers of the repository, and left out
there, where pictures lead to the pages.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

INDEX = "docs/README"
_GALLERY = re.compile(r"\((?:\.\./)*examples/gallery/GALLERY_HEADER\.rst\)")
_EXAMPLES = re.compile(r"(?:^- `[^`<]+ <plot_\w+\.py>`_\n)+", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#\s]+\.(?:md|rst))\)")
_PAGES = re.compile(r"<!-- pages: (\S+) -->")
_TREE = "\n```{{toctree}}\n:maxdepth: 1\n{options}\n{entries}\n```\n"


def add_contents(app: Sphinx, name: str, text: list[str]) -> None:
    """Add the trees of the index, and lists where a page asks for them."""
    text[0] = _GALLERY.sub("(/docs/gallery/index.rst)", text[0])
    if name == "docs/gallery/index":
        text[0] = _EXAMPLES.sub("", text[0])
    if name == INDEX:
        text[0] += "".join(section_tree(section) for section in re.split(r"^## ", text[0], flags=re.MULTILINE)[1:])
    text[0] = _PAGES.sub(lambda found: tree("", ":glob:", [found[1].removesuffix(".md")]), text[0])


def section_tree(section: str) -> str:
    """The tree of one section: its title, and the pages that it links to, in order."""
    title, _, body = section.partition("\n")
    pages = [link.rpartition(".")[0] for link in dict.fromkeys(_LINK.findall(body))]
    return tree(title.strip(), ":hidden:", pages) if pages else ""


def tree(caption: str, option: str, entries: list[str]) -> str:
    """The text of a directive."""
    options = f":caption: {caption}\n{option}\n" if caption else f"{option}\n"
    return _TREE.format(options=options, entries="\n".join(entries))


def begin_at_the_index(app: Sphinx, error: Exception | None) -> None:
    """Write an index.html that leads to the index, for its own name is docs/README.html."""
    if error is None and app.builder.format == "html":
        page = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={INDEX}.html">'
        (Path(app.outdir) / "index.html").write_text(page + "<title>opwright</title>\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register both."""
    app.connect("source-read", add_contents)
    app.connect("build-finished", begin_at_the_index)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
