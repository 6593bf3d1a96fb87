"""A kernel as C++: a row function with the arithmetic, and the lines of the launcher that hand it every row."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from opwright.codegen.cpp_expression import CPP_TYPES, VMATH_FUNCTIONS, spell_value
from opwright.codegen.cpp_size import spell_size
from opwright.errors import NoKernel
from opwright.ir.dtype import DType
from opwright.ir.expression import Apply, Expression, Load, children
from opwright.ir.integer import ZERO, Integer, linear_coefficients
from opwright.ir.program import Kernel

# Work, in units of about 0.02 ns for each element, below which a second thread costs more than it brings (6 µs).
_WORK_OF_ONE_THREAD = 280_000
_LEAST_GRAIN, _MOST_GRAIN = 1024, 262_144
_TRANSCENDENTAL = VMATH_FUNCTIONS - {"abs", "ceil", "floor", "round", "sign", "sqrt", "trunc"}
_TRANSCENDENTAL_COST = 8


@dataclass(frozen=True, slots=True)
class Access:
    """A place a kernel reads or writes, row by row.

    Attributes:
        name: What the row is called, without the suffix `_row`.
        buffer: The tensor.
        dtype: Of its elements.
        strides: For each axis, how far one step goes, in C++.
        offset: Where the first element is, in C++.
        whole_row: Whether it moves along the innermost axis; if not, one value serves the row.
        stored: Whether it is written.
    """

    name: str
    buffer: str
    dtype: DType
    strides: tuple[str, ...]
    offset: str
    whole_row: bool
    stored: bool


def emit_row_function(kernel: Kernel, name: str, formulas: Sequence[str]) -> str:
    """The arithmetic of a kernel over one row.

    Args:
        kernel: A fused kernel whose loads are all bound to names.
        name: What the function is called.
        formulas: Comment lines to put above it.
    """
    accesses = accesses_of(kernel)
    lines = [f"// {formula}" for formula in formulas]
    lines.append(f"static void {name}(Size count, void* const* row) {{")
    for position, access in enumerate(accesses):
        qualifier = "" if access.stored else "const "
        pointer = f"static_cast<{qualifier}{CPP_TYPES[access.dtype]}*>(row[{position}])"
        if access.whole_row or access.stored:
            lines.append(f"  {qualifier}{CPP_TYPES[access.dtype]}* {access.name}_row = {pointer};")
        else:
            lines.append(f"  const {CPP_TYPES[access.dtype]} {access.name} = *{pointer};")
    lines.append("#pragma omp simd")
    lines.append("  for (Size j = 0; j < count; ++j) {")
    whole = {access.name for access in accesses if access.whole_row and not access.stored}
    for let in kernel.lets:
        if isinstance(let.value, Load):
            if let.name in whole:
                lines.append(f"    const {CPP_TYPES[let.value.dtype]} {let.name} = {let.name}_row[j];")
            continue
        lines.append(f"    const {CPP_TYPES[let.value.dtype]} {let.name} = {spell_value(let.value)};")
    stores = [access for access in accesses if access.stored]
    for access, store in zip(stores, kernel.stores, strict=True):
        lines.append(f"    {access.name}_row[j] = {spell_value(store.value)};")
    lines += ["  }", "}"]
    return "\n".join(lines)


def emit_launch(kernel: Kernel, function: str, numbers: Set[str]) -> list[str]:
    """The lines of the launcher that run a row function over all rows; `numbers` are buffers that are variables."""
    axes = max(len(kernel.axes), 1)
    extents = ", ".join(spell_size(axis.extent) for axis in kernel.axes) or "1"
    lines = ["{", f"  const Size extents[] = {{{extents}}};", f"  const Operand<{axes}> operands[] = {{"]
    for access in accesses_of(kernel):
        qualifier = "" if access.stored else "const "
        place = f"{access.buffer}.at<{qualifier}{CPP_TYPES[access.dtype]}>({access.offset})"
        if access.buffer in numbers:
            place = f"&{access.buffer}"
        strides = f"{{{', '.join(access.strides)}}}"
        if access.stored:
            lines.append(f"      store<{axes}>({place}, {strides}),")
        elif access.whole_row:
            lines.append(f"      load<{axes}>({place}, {strides}),")
        else:
            lines.append(f"      load<{axes}>({place}, {strides}, false),")
    lines += ["  };", f"  for_each_row(extents, operands, {grain(kernel)}, {function});", "}"]
    return lines


def accesses_of(kernel: Kernel) -> tuple[Access, ...]:
    """All loads, then all stores."""
    axes = tuple(axis.name for axis in kernel.axes)
    found = [
        _access(let.name, let.value.buffer, let.value.dtype, let.value.indices, axes, stored=False)
        for let in kernel.lets
        if isinstance(let.value, Load)
    ]
    names: set[str] = {let.name for let in kernel.lets}
    for position, store in enumerate(kernel.stores):
        repeated = sum(other.buffer == store.buffer for other in kernel.stores) > 1
        name = f"{store.buffer}_{position}" if repeated else store.buffer
        row_name = f"{name}_out" if name in names else name
        found.append(_access(row_name, store.buffer, store.value.dtype, store.indices, axes, stored=True))
    return tuple(found)


def _access(
    name: str, buffer: str, dtype: DType, indices: Sequence[Integer], axes: Sequence[str], *, stored: bool
) -> Access:
    strides: dict[str, list[str]] = {axis: [] for axis in axes}
    offsets: list[str] = []
    for dimension, index in enumerate(indices):
        split = linear_coefficients(index, axes)
        if split is None:
            raise NoKernel(f"'{buffer}' is indexed by {index}, which is not affine")
        coefficients, rest = split
        for axis, coefficient in coefficients.items():
            strides[axis].append(times(coefficient, f"{buffer}.stride({dimension})"))
        if rest != ZERO:
            offsets.append(times(rest, f"{buffer}.stride({dimension})"))
    return Access(
        name=name,
        buffer=buffer,
        dtype=dtype,
        strides=tuple(" + ".join(strides[axis]) or "0" for axis in axes) or ("1" if stored else "0",),
        offset=" + ".join(offsets) or "0",
        whole_row=stored or bool(axes and strides[axes[-1]]),
        stored=stored,
    )


def times(factor: Integer, stride: str) -> str:
    """A multiple of a stride, in C++."""
    if factor.constant == 1:
        return stride
    text = spell_size(factor)
    return f"({text}) * {stride}" if len(factor.terms) > 1 else f"{text} * {stride}"


def grain(kernel: Kernel) -> int:
    """How many elements one thread should have at least."""
    values = [let.value for let in kernel.lets] + [store.value for store in kernel.stores]
    cost = sum(map(_cost, values))
    return max(_LEAST_GRAIN, min(_MOST_GRAIN, _WORK_OF_ONE_THREAD // max(cost, 1)))


def _cost(expression: Expression) -> int:
    own = 1
    if isinstance(expression, Apply) and expression.function in _TRANSCENDENTAL:
        own = _TRANSCENDENTAL_COST
    return own + sum(_cost(child) for child in children(expression))
