"""Names of incoming gradients."""

from __future__ import annotations

from collections.abc import Sequence


def tangent_names(arguments: Sequence[str], outputs: int) -> tuple[str, ...]:
    """What the incoming gradients are called: `grad_output`, with more `grad_` in front at each further order."""
    stem = "grad_output"
    while any(argument.startswith(stem) for argument in arguments):
        stem = f"grad_{stem}"
    return tuple(f"{stem}_{position}" for position in range(outputs)) if outputs > 1 else (stem,)
