"""Arguments that several commands share, and what they mean."""

from __future__ import annotations

from typing import Annotated

import torch
import typer

Target = Annotated[str, typer.Argument(metavar="FILE[:OPERATOR]", help="A Python file, and one operator in it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON to stdout.")]
Device = Annotated[str, typer.Option(help="Where the tensors are.")]


def dtype_named(name: str) -> torch.dtype:
    """Return a dtype of torch by its name, such as "bfloat16"."""
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise typer.BadParameter(f"{name!r} is not a dtype of torch; float32 is one")
    return dtype
