"""opwright cache: the size of the cache, and how to reduce it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from opwright.cli.arguments import AsJson
from opwright.cli.terminal import write_either
from opwright.report.figures import in_units
from opwright.settings import Settings, bytes_of
from opwright.toolchain.storage.cache import LibraryCache
from opwright.toolchain.storage.limit import Item, items, shrink

cache_commands = typer.Typer(no_args_is_help=True, help="Show the size of the cache, or reduce it.")


@cache_commands.command("size")
def size_command(as_json: AsJson = False) -> None:
    """Show the contents of the cache and its limit."""
    settings, root = _cache()
    found, limit_bytes = list(items(root)), settings.cache_limit_bytes
    kinds = {kind: _sum([item for item in found if item.kind == kind]) for kind in ("libraries", "records", "failed")}
    value = {"directory": str(root), "limit_bytes": limit_bytes, **_sum(found), **kinds}
    limit = "without a limit" if limit_bytes is None else f"of {in_units(limit_bytes)} at most"
    lines = [f"  {kind:<10} {each['count']:>6}  {in_units(each['bytes']):>10}" for kind, each in kinds.items()]
    write_either(as_json, value, "\n".join([f"{root}: {in_units(_sum(found)['bytes'])}, {limit}", *lines]))


@cache_commands.command("prune")
def prune_command(
    to: Annotated[str | None, typer.Option(metavar="SIZE", help='Such as "500 MB"; by default the limit.')] = None,
    as_json: AsJson = False,
) -> None:
    """Remove least recently used entries until the rest fits. Entries in use, or used in the last hour, stay."""
    settings, root = _cache()
    limit_bytes = settings.cache_limit_bytes if to is None else bytes_of(to)
    if to is not None and limit_bytes is None:
        raise typer.BadParameter(f'{to!r} is not a size; "500 MB" is one')
    _tell([] if limit_bytes is None else shrink(root, limit_bytes), root, as_json)


@cache_commands.command("clear")
def clear_command(as_json: AsJson = False) -> None:
    """Remove everything except what a process is building or has loaded."""
    _, root = _cache()
    _tell(shrink(root, 0, spared_s=0.0), root, as_json)


def _cache() -> tuple[Settings, Path]:
    settings = Settings.from_environment()
    cache = LibraryCache.open(settings.cache_directory)
    cache.sweep()
    return settings, cache.root


def _tell(removed: Sequence[Item], root: Path, as_json: bool) -> None:
    gone, left = _sum(removed), _sum(list(items(root)))
    text = f"{root}: removed {gone['count']} entries, {in_units(gone['bytes'])}; "
    text += f"{left['count']} entries are left, {in_units(left['bytes'])}"
    write_either(as_json, {"directory": str(root), "removed": gone, "left": left}, text)


def _sum(found: Sequence[Item]) -> dict[str, Any]:
    return {"count": len(found), "bytes": sum(item.size_bytes for item in found)}
