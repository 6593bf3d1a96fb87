"""How reductions are spelled in C++: accumulators, steps and results.

Sums and products of real numbers accumulate in double precision; in a row with several passes, a loop writes the
summands to a buffer, and `sum_of` (include/opwright/sums.h) adds them up. Maxima and minima of a row are computed on
integers in the same order (include/opwright/reduce_order.h), which a compiler can vectorise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opwright.codegen.cpp.expression import CPP, CPP_TYPES, Dialect
from opwright.ir.expressions.dtype import DType


@dataclass(frozen=True, slots=True)
class ReducerSpelling:
    """One reduction of values of one dtype.

    Attributes:
        kept_as: The type of the accumulator.
        start: The initial value.
        clause: OpenMP's name of the operation.
        value: The value as it is reduced; gets the value.
        step: A statement that adds a value; gets the accumulator and the value.
        end: The result; gets the accumulator.
        part: The type of summands that are added up in runs; None if values are reduced one by one.
    """

    kept_as: str
    start: str
    clause: str
    value: str
    step: str
    end: str
    part: str | None = None


def row_reducer(function: str, dtype: DType, dialect: Dialect = CPP) -> ReducerSpelling:
    """The reduction of a row into one number."""
    if dtype.is_floating and function in ("maximum", "minimum"):
        sign, kind = "-" if function == "minimum" else "", CPP_TYPES[dtype]
        kept = "int32_t" if dtype is DType.FLOAT32 else "int64_t"
        lowest = "INT32_MIN" if dtype is DType.FLOAT32 else "INT64_MIN"
        value = "order_of(-({}))" if sign else "order_of({})"
        return ReducerSpelling(
            kept, lowest, "max", value, "{0} = {1} > {0} ? {1} : {0};", f"{sign}from_order<{kind}>({{}})"
        )
    return column_reducer(function, dtype, dialect)


def column_reducer(function: str, dtype: DType, dialect: Dialect = CPP) -> ReducerSpelling:
    """The reduction of many columns side by side."""
    kind = CPP_TYPES[dtype]
    wide = "double" if dtype.is_floating else "int64_t"
    match function:
        case "sum":
            part = kind if dtype.is_floating else None
            return ReducerSpelling(wide, "0", "+", "{}", "{0} += {1};", f"static_cast<{kind}>({{}})", part)
        case "product":
            return ReducerSpelling(wide, "1", "*", "{}", "{0} *= {1};", f"static_cast<{kind}>({{}})")
        case "maximum":
            start = f"-{dialect.infinities[dtype]}" if dtype.is_floating else _LEAST[dtype]
            return ReducerSpelling(kind, start, "max", "{}", "{0} = max<" + kind + ">({0}, {1});", "{}")
        case "minimum":
            start = dialect.infinities[dtype] if dtype.is_floating else _MOST[dtype]
            return ReducerSpelling(kind, start, "min", "{}", "{0} = min<" + kind + ">({0}, {1});", "{}")
        case "any":
            return ReducerSpelling("int32_t", "0", "|", "{}", "{0} |= {1};", "{} != 0")
        case "all":
            return ReducerSpelling("int32_t", "1", "&", "{}", "{0} &= {1};", "{} != 0")
        case _:
            raise KeyError(function)


def reductions_struct(name: str, spellings: Mapping[str, ReducerSpelling], where: str = "") -> list[str]:
    """A struct of partial results, by the names of the reductions; without a constructor, for shared memory.

    Args:
        name: Of the struct.
        spellings: How each reduction is spelled.
        where: What stands before its functions.
    """
    return [
        f"struct {name} {{",
        *(f"  {spelling.kept_as} {reduction};" for reduction, spelling in spellings.items()),
        "",
        f"  {where}void start() {{",
        *(f"    {reduction} = {spelling.start};" for reduction, spelling in spellings.items()),
        "  }",
        f"  {where}void add(const {name}& other) {{",
        *(f"    {spelling.step.format(reduction, f'other.{reduction}')}" for reduction, spelling in spellings.items()),
        "  }",
        "};",
    ]


_NAMES = {DType.UINT8: "UINT8", DType.INT8: "INT8", DType.INT16: "INT16", DType.INT32: "INT32", DType.INT64: "INT64"}
_LEAST = {dtype: "0" if dtype is DType.UINT8 else f"{name}_MIN" for dtype, name in _NAMES.items()}
_LEAST[DType.BOOL] = "false"
_MOST = {dtype: f"{name}_MAX" for dtype, name in _NAMES.items()}
_MOST[DType.BOOL] = "true"
