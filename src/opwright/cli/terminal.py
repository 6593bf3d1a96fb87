"""Terminal: stdout is data, stderr is talk."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from opwright.errors import OpwrightError
from opwright.settings import Settings

_WIDTH_OF_A_FILE = 100


def write_json(value: Any) -> None:
    """Write JSON to stdout."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def write_text(text: str) -> None:
    """Write text to stdout unchanged."""
    print(text)


def write_either(as_json: bool, value: Any, text: str) -> None:
    """Write a result to stdout, as JSON or as text."""
    if as_json:
        write_json(value)
    else:
        write_text(text)


def write_judged(
    results: Sequence[Mapping[str, Any]], table: Callable[[Mapping[str, Any]], RenderableType], *, as_json: bool
) -> None:
    """Write results to stdout, as JSON or as tables; exit with 1 if one has not passed."""
    if as_json:
        write_json(results)
    else:
        for result in results:
            write_table(table(result))
    if not all(result["passed"] for result in results):
        raise typer.Exit(1)


def write_table(renderable: RenderableType) -> None:
    """Write a table to stdout, coloured if it is a terminal and NO_COLOR is not set."""
    width = None if sys.stdout.isatty() else _WIDTH_OF_A_FILE
    Console(width=width, no_color=not Settings.from_environment().color, highlight=False).print(renderable, crop=False)


def say_refusal(refusal: OpwrightError) -> None:
    """Write the reason why a command could not run to stderr."""
    print(f"error: {refusal}", file=sys.stderr)


@contextmanager
def progress_on_stderr(subject: str = "") -> Iterator[Callable[[str, int, int], None]]:
    """Show progress while a command runs, if stderr is a terminal.

    Yields:
        A function to call with the current step, the number of finished steps, and their total.
    """
    console = Console(stderr=True, no_color=not Settings.from_environment().color)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(subject)

        def tell(what: str, done: int, total: int) -> None:
            progress.update(task, description=f"{subject}: {what}" if subject else what, completed=done, total=total)

        yield tell
