"""Names of cotangents."""

from __future__ import annotations

from collections.abc import Sequence

from opwright.ir.names.fresh import fresh_stem


def tangent_names(arguments: Sequence[str], outputs: int) -> tuple[str, ...]:
    """The names of cotangents: `grad_output`, with one more `grad_` in front at each further order."""
    stem = fresh_stem("grad_output", arguments, "grad_")
    return tuple(f"{stem}_{position}" for position in range(outputs)) if outputs > 1 else (stem,)
