"""Display results at a prompt and in a notebook: as the tables of the command line, or as plain text."""

from __future__ import annotations

import io
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_WIDTH = 100
_PREFORMATTED = '<pre style="line-height: normal">{code}</pre>'


class Shown:
    """A result that displays as a table: plain at a prompt, coloured in a notebook."""

    __slots__ = ()

    def _table(self) -> RenderableType:
        raise NotImplementedError

    def __repr__(self) -> str:
        console = _console(min(shutil.get_terminal_size((_WIDTH, 0)).columns, _WIDTH))
        console.print(self._table())
        return "\n".join(line.rstrip() for line in console.export_text().splitlines()).rstrip()

    def _repr_html_(self) -> str:
        return _html(self._table(), _WIDTH)


class Page(str):
    """A string that displays without quotes: plain at a prompt, coloured in a notebook.

    Attributes:
        language: Its language, by the name in Pygments.
    """

    language: str

    def __new__(cls, text: str, language: str = "text") -> Page:
        """Make one of a string and its language."""
        page = super().__new__(cls, text)
        page.language = language
        return page

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from rich.syntax import Syntax

        widest = max(map(len, self.splitlines()), default=1)
        return _html(Syntax(self, self.language, theme="ansi_light"), widest)


def _console(width: int) -> Console:
    from rich.console import Console  # a process that only calls operators does not need Pygments

    return Console(file=io.StringIO(), record=True, width=width, highlight=False, force_jupyter=False)


def _html(renderable: RenderableType, width: int) -> str:
    console = _console(width)
    console.print(renderable, crop=False)
    return console.export_html(inline_styles=True, code_format=_PREFORMATTED)
