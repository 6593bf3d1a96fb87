"""offline: the build fails if a page loads something from a network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

_LOADED = re.compile(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"(?:https?:)?//|<link\b[^>]*\bhref=\"(?:https?:)?//")
_IMPORTED = re.compile(r"@import\s+(?:url\()?['\"]?(?:https?:)?//|url\(['\"]?(?:https?:)?//")


def look(app: Sphinx, error: Exception | None) -> None:
    """Look through every page and style sheet that was written."""
    if error is not None or app.builder.format != "html":
        return
    for pattern, ending in ((_LOADED, "html"), (_IMPORTED, "css")):
        for file in Path(app.outdir).rglob(f"*.{ending}"):
            if found := pattern.search(file.read_text(encoding="utf-8")):
                raise ExtensionError(f"{file.relative_to(app.outdir)} loads something from a network: {found[0]}")


def setup(app: Sphinx) -> dict[str, Any]:
    """Look when all is written."""
    app.connect("build-finished", look)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
