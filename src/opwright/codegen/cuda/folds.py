"""What threads fold, as a struct that they send one another and put together."""

from __future__ import annotations

from collections.abc import Mapping

from opwright.codegen.cpp.folds import FoldSpelling


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


def column_structs(spellings: Mapping[str, FoldSpelling]) -> list[str]:
    """The same for packs of columns: `Parts` are a few points, in their own precision, `Folds` all of them."""
    parts = [f"  {spelling.part or spelling.kept_as} {fold}[Width];" for fold, spelling in spellings.items()]
    kept = [f"  {spelling.kept_as} {fold}[Width];" for fold, spelling in spellings.items()]
    steps = [spelling.step.format(f"{fold}[j]", f"other.{fold}[j]") for fold, spelling in spellings.items()]
    start = [
        "",
        "  __device__ void start() {",
        "#pragma unroll",
        "    for (int j = 0; j < Width; ++j) {",
        *(f"      {fold}[j] = {spelling.start};" for fold, spelling in spellings.items()),
        "    }",
        "  }",
    ]
    return [
        "// What a few points of each column fold to, and all of them.",
        "struct Parts {",
        *parts,
        *start,
        "};",
        "struct Folds {",
        *kept,
        *start,
        "  template <class Other>",
        "  __device__ void add(const Other& other) {",
        "#pragma unroll",
        "    for (int j = 0; j < Width; ++j) {",
        *(f"      {step}" for step in steps),
        "    }",
        "  }",
        "};",
    ]
