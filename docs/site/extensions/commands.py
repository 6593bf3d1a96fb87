"""commands: the directive `commands`, every command of the shell with what it takes, read off the program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from opwright.cli.main import app as program


class Commands(SphinxDirective):
    """One section for each command: what it does, how it is called, and a table of what it takes."""

    def run(self) -> list[nodes.Node]:
        """Make the sections."""
        text = "\n".join(line for path, command in commands() for line in section(path, command))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with the words that call it."""
    group: Any = typer.main.get_command(program)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from ((f"{name} {below}", each) for below, each in command.commands.items())
        else:
            yield name, command


def section(path: str, command: Any) -> list[str]:
    """The lines of one section in Markdown."""
    context = command.make_context(path, [], resilient_parsing=True)
    usage = " ".join(["opwright", path, *command.collect_usage_pieces(context)])
    taken = [parameter for parameter in command.params if parameter.name != "help"]
    lines = [f"## opwright {path}", "", *paragraphs(command.help), "", "```sh", usage, "```", ""]
    if taken:
        lines += ["| takes | meaning | default |", "|---|---|---|", *(row(each) for each in taken), ""]
    return lines


def paragraphs(text: str | None) -> list[str]:
    """The help of a command, a sentence for people."""
    return (text or "").replace("\b", "").splitlines()


def row(parameter: Any) -> str:
    """One argument or option."""
    spelled = ", ".join(f"`{each}`" for each in parameter.opts) if parameter.param_type_name == "option" else ""
    spelled = spelled or f"`{parameter.name.upper()}`"
    default = parameter.default
    shown = "" if default in (None, False, (), []) or callable(default) else f"`{plain(default)}`"
    return f"| {spelled} | {(getattr(parameter, 'help', '') or '').replace('|', '/')} | {shown} |"


def plain(value: Any) -> str:
    """A default as one types it."""
    if isinstance(value, list | tuple):
        return " ".join(plain(each) for each in value)
    return str(getattr(value, "value", value))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
