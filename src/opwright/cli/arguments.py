"""Arguments that several commands share, and their meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import torch
import typer

from opwright.checking.parts import part_of
from opwright.samples import DEFAULT_DTYPES

TARGET_HELP = "FILE:NAME or package.module:NAME; without :NAME all the operators in it."

Target = Annotated[str, typer.Argument(metavar="TARGET", help=TARGET_HELP)]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON to stdout.")]
Device = Annotated[str, typer.Option(help="The device of the tensors.")]
Dtypes = Annotated[list[str], typer.Option("--dtype", help="A dtype of the tensors; may be repeated.")]

Part = Annotated[str, typer.Option(metavar="I/N", help="Run one of N parts, such as 2/5; together they are all.")]

DEFAULT = [str(dtype).removeprefix("torch.") for dtype in DEFAULT_DTYPES]
"""The default of `Dtypes`."""


def dtypes_named(names: Sequence[str]) -> list[torch.dtype]:
    """Return torch dtypes by their names."""
    return [dtype_named(name) for name in names]


def dtype_named(name: str) -> torch.dtype:
    """Return a torch dtype by its name, such as "bfloat16"."""
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise typer.BadParameter(f"{name!r} is not a torch dtype; float32 is one")
    return dtype


def checked_part(part: str) -> str:
    """Return "i/n" as it is, if it is written so."""
    try:
        part_of((), part)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    return part
