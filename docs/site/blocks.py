"""Run the code of a page: `python docs/site/blocks.py PAGE.md`, in a folder of its own.

Blocks run from top to bottom, those in Python in one namespace, those in `sh` each in a shell. A block without a
language, or after the comment `<!-- printed -->`, is what the block before it printed: figures may differ, and "…"
stands for anything. A block after the comment `<!-- file: NAME -->` is written to that file instead, and one after
`<!-- not run: WHY -->` is left out. Exit code 1, with the line of the page, if a block fails or prints something else.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"(?:<!-- (file|not run|printed)(?:: ([^\n]*?))? -->\n\n?)?^```([\w-]*)\n(.*?)^```$", re.M | re.S)
_FIGURE = re.compile(r"\d+(?:[.,]\d+)*(?:e[-+]?\d+)?")
_RUN = ("python", "sh")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced piece of a page.

    Attributes:
        line: Where its text begins on the page.
        language: What stands behind the fence.
        text: What is inside.
        kind: What a comment before it says: "file", "not run", "printed" or nothing.
        detail: The name of the file, or the reason.
    """

    line: int
    language: str
    text: str
    kind: str = ""
    detail: str = ""

    @property
    def is_run(self) -> bool:
        """Whether it is code to run."""
        return self.language in _RUN and not self.kind

    @property
    def is_printed(self) -> bool:
        """Whether it is what the block before it printed."""
        return self.kind == "printed" or (not self.kind and not self.language)


class PageWrong(Exception):
    """A block fails, or prints something else than the page says."""


def blocks_of(text: str) -> Iterator[Block]:
    """Find the blocks of a page, in order."""
    for found in _BLOCK.finditer(text):
        kind, detail, language, inside = found.groups()
        yield Block(text.count("\n", 0, found.start(4)) + 1, language, inside, kind or "", detail or "")


def run_page(page: Path) -> None:
    """Run a page in the current folder.

    Raises:
        PageWrong: If a block fails, or prints something else.
    """
    module = types.ModuleType(page.stem.replace("-", "_"))
    sys.modules[module.__name__] = module
    sys.path.insert(0, ".")
    printed = ""
    for block in blocks_of(page.read_text(encoding="utf-8")):
        place = f"{page.name}:{block.line}"
        if block.kind == "file":
            Path(block.detail).parent.mkdir(parents=True, exist_ok=True)
            Path(block.detail).write_text(block.text, encoding="utf-8")
        elif block.is_run:
            printed = run_python(block, module, place) if block.language == "python" else run_shell(block, place)
        elif block.is_printed and not agrees(block.text, printed):
            raise PageWrong(f"{place}: the page shows\n{block.text}\nbut this is printed\n{printed}")


def run_python(block: Block, module: types.ModuleType, place: str) -> str:
    """Run a block in the page's namespace; return what it prints."""
    file = Path(f"block_{block.line}.py")  # a real one, for what reads the sources of functions
    file.write_text(block.text, encoding="utf-8")
    module.__file__ = str(file)
    with contextlib.redirect_stdout(io.StringIO()) as output:
        try:
            exec(compile(block.text, str(file.absolute()), "exec"), vars(module))
        except BaseException as error:
            raise PageWrong(f"{place}: {type(error).__name__}: {error}") from error
    return output.getvalue()


def run_shell(block: Block, place: str) -> str:
    """Run a block in a shell that stops at the first failure; return what it prints."""
    beside = {**os.environ, "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])}
    command = ["bash", "-euo", "pipefail", "-c", block.text]
    done = subprocess.run(command, env=beside, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PageWrong(f"{place}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def agrees(shown: str, printed: str) -> bool:
    """Whether lines are as shown: figures may differ, "…" at the end of a line or alone stands for anything."""
    pattern = "".join(map(_line_pattern, shown.strip().splitlines()))
    return re.fullmatch(pattern, "\n".join(map(_plain, printed.strip().splitlines())) + "\n") is not None


def _line_pattern(line: str) -> str:
    if line.strip() in ("…", "..."):
        return r"(?:.*\n)*"
    return ".*".join(map(re.escape, _plain(line).split("…"))) + r"\n"


def _plain(line: str) -> str:
    return " ".join(_FIGURE.sub("#", line).split())


if __name__ == "__main__":
    try:
        run_page(Path(sys.argv[1]))
    except PageWrong as wrong:
        sys.exit(str(wrong))
