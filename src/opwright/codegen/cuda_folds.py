"""What threads fold, as a struct that they send one another and put together."""

from __future__ import annotations

from collections.abc import Mapping

from opwright.codegen.cpp_folds import FoldSpelling


def folds_struct(name: str, spellings: Mapping[str, FoldSpelling]) -> list[str]:
    """A struct of what is folded so far, by the names of the folds; it has no constructor, to lie in shared memory."""
    return [
        f"struct {name} {{",
        *(f"  {spelling.kept_as} {fold};" for fold, spelling in spellings.items()),
        "",
        "  __device__ void start() {",
        *(f"    {fold} = {spelling.start};" for fold, spelling in spellings.items()),
        "  }",
        f"  __device__ void add(const {name}& other) {{",
        *(f"    {spelling.step.format(fold, f'other.{fold}')}" for fold, spelling in spellings.items()),
        "  }",
        "};",
    ]
