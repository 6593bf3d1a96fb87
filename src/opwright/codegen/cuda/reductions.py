"""The partial results of threads for columns, as structs that they exchange and combine."""

from __future__ import annotations

from collections.abc import Mapping

from opwright.codegen.cpp.loops.reductions import ReducerSpelling


def column_structs(spellings: Mapping[str, ReducerSpelling]) -> list[str]:
    """The same for packs of columns: `Parts` are a few points, in their own precision, `Reductions` all of them."""
    parts = [f"  {spelling.part or spelling.kept_as} {reduction}[Width];" for reduction, spelling in spellings.items()]
    kept = [f"  {spelling.kept_as} {reduction}[Width];" for reduction, spelling in spellings.items()]
    steps = [
        spelling.step.format(f"{reduction}[j]", f"other.{reduction}[j]") for reduction, spelling in spellings.items()
    ]
    start = [
        "",
        "  __device__ void start() {",
        "#pragma unroll",
        "    for (int j = 0; j < Width; ++j) {",
        *(f"      {reduction}[j] = {spelling.start};" for reduction, spelling in spellings.items()),
        "    }",
        "  }",
    ]
    return [
        "// Partial results of each column: of a few points, and of all.",
        "struct Parts {",
        *parts,
        *start,
        "};",
        "struct Reductions {",
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
