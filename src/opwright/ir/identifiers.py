"""Names that C++ and the kernels' headers leave free."""

from __future__ import annotations

import itertools
import keyword
import re
from collections.abc import Sequence

from opwright.ir.functions import FUNCTIONS

# Words that C++ or the kernels' headers would take for something else.
RESERVED = frozenset({
    *FUNCTIONS, *keyword.kwlist, "alignas", "asm", "auto", "bool", "case", "catch", "char", "const", "default",
    "delete", "do", "double", "enum", "explicit", "extern", "false", "float", "for", "friend", "goto", "inline",
    "int", "long", "mutable", "namespace", "new", "operator", "private", "protected", "public", "register", "short",
    "signed", "sizeof", "static", "struct", "switch", "template", "this", "throw", "true", "typedef", "typename",
    "union", "unsigned", "using", "virtual", "void", "volatile", "constexpr", "decltype", "noexcept", "nullptr",
    "static_cast", "thread_local", "bitand", "bitor", "compl", "xor", "NAN", "INFINITY", "NULL", "EOF", "errno",
    "assert", "j", "count", "rows", "stack", "main", "opwright", "torch", "std", "at", "given", "sizes", "made",
    "known", "valid", "allocate", "boolean", "call", "cpu", "finish", "float32", "float64", "floor_divide",
    "floor_remainder", "for_each_row", "gather", "greatest", "int32", "int64", "int32_t", "int64_t", "load", "pass",
    "pass_dtype", "pass_empty_list", "pass_list", "pass_nothing", "pass_optional", "pool", "registration",
    "row_major", "scatter", "size_t", "store", "strided", "take", "uint64_t", "Mutable", "Operand", "Pool",
    "Registration", "RowFunction", "Size", "StableIValue", "Tensor", "Walk", "BFloat16", "Complex", "Float16",
    "bfloat16", "complex64", "complex128", "float16", "int8", "int8_t", "int16", "int16_t", "uint8", "uint8_t",
    "to_bfloat16", "to_float", "to_float16", "arguments", "places", "inner_axes", "outer_axes", "these_pieces",
    "this_piece", "this_row", "Index", "Width", "Held", "infinity", "not_a_number", "cuda", "partials", "pieces",
    "read", "compute", "run", "fold", "start", "from_zero",
    *(f"{name}f" for name in FUNCTIONS), "fabs", "rint", "rintf",
})  # fmt: skip

# Names that emission derives from others.
_DERIVED = re.compile(r".*_(size|stride)_\d+|.*_(sizes|strides|offset|stack|pack)|folds(_\d+)?")


def is_free(name: str) -> bool:
    """Whether a name means nothing yet where kernels are written."""
    return name not in RESERVED and not _DERIVED.fullmatch(name) and not name.startswith(("_", "M_"))


def stem_of(name: str) -> str:
    """What a name that is not free is followed by, to make one that is."""
    return re.sub("^M_", "m_", name.strip("_")) or "unnamed"


def identifiers(names: Sequence[str]) -> list[str]:
    """Spell the names of parameters so that kernels can use them, each its own way: `double` becomes `double_given`."""
    spelled = {name: name for name in names if is_free(name) and not name.startswith("saved_")}
    for name in names:
        wished = f"{stem_of(name)}_given"
        numbered = (f"{wished}_{number}" for number in itertools.count(1))
        spelled.setdefault(name, next(n for n in itertools.chain([wished], numbered) if n not in spelled.values()))
    return [spelled[name] for name in names]
