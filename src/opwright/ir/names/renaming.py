"""rename: a Program → the same Program with other names for its buffers, values, kernels and sizes.

Axes and gathered indices keep their names; a size that an input has stays `{input}_size_{dimension}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from opwright.ir.contents import bound_sizes
from opwright.ir.expressions.expression import Load, Local
from opwright.ir.expressions.integer import Integer, substitute, symbol
from opwright.ir.parts import field_names, with_parts
from opwright.ir.program import Buffer, Check, Kernel, Let, Program, Reduce, Store, TensorOperand, View

Called = Callable[[str], str]
_SIZE = re.compile(r"(.+)(_size_\d+)")

# The field of each node that is renamed.
_NAMES: dict[type, str] = {
    **dict.fromkeys((Buffer, Kernel, Let, Reduce, Local), "name"),
    **dict.fromkeys((Check, Store, Load, TensorOperand), "buffer"),
    View: "source",
}


def rename(program: Program, called: Called) -> Program:
    """Rename everything by `called`, except the Program itself, its axes and its gathers."""
    sizes = {name: symbol(_size_called(name, called)) for name in bound_sizes(program)}

    in_sizes = cache(lambda expression: substitute(expression, sizes))

    def renamed(node: Any) -> Any:
        if isinstance(node, Integer):
            return in_sizes(node)
        field = _NAMES.get(type(node))
        if field is None:
            return with_parts(node, renamed)
        parts = ((name, getattr(node, name)) for name in field_names(type(node)))
        return type(node)(*(called(part) if name == field else renamed(part) for name, part in parts))

    program = renamed(program)
    return replace(
        program,
        sizes=tuple(str(sizes[size]) for size in program.sizes),
        outputs=tuple(map(called, program.outputs)),
        cases=tuple(replace(c, sizes=tuple((str(sizes[name]), n) for name, n in c.sizes)) for c in program.cases),
    )


def _size_called(name: str, called: Called) -> str:
    found = _SIZE.fullmatch(name)
    return f"{called(found[1])}{found[2]}" if found else called(name)
