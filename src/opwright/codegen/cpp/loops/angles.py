"""Kernels of sines and cosines, compiled for runs whose angles are all near zero and for others.

Before:  y[j] = sin(alpha·x)
After:   farthest = the largest |alpha·x| of a run; y[j] = sin<Angles::near>(alpha·x) if that is near, else as before

See vmath_circular.h for the two, and complex_near.h for exp, sin and cos of complex numbers, of which one part is an
angle. The angles must be cheap to compute once more: they have no sine and no reduction in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from opwright.codegen.cpp.expression import OF_ANGLES, OF_COMPLEX_ANGLES, spell_value
from opwright.codegen.cpp.loops.access import Access
from opwright.codegen.cpp.loops.divisors import local_type
from opwright.ir.contents import needed, statements
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Apply, Expression, Load, nodes, rewrite_children
from opwright.ir.program import Gather, Kernel, Let, Reduce
from opwright.ir.rows import row_axes, varies, varying_locals

_TOLD: Mapping[DType, Mapping[str, str]] = {
    DType.FLOAT32: OF_ANGLES,
    DType.FLOAT64: OF_ANGLES,
    DType.COMPLEX64: OF_COMPLEX_ANGLES,
}


@dataclass(frozen=True, slots=True)
class Angles:
    """The angles of a kernel that can be looked at before it runs.

    Attributes:
        compared: The functions that compare them, and them; all of one dtype.
        lets: What they are computed from, in order.
        kernel: The kernel, with functions that are told where these angles are.
    """

    compared: tuple[tuple[str, Expression], ...]
    lets: tuple[Let, ...]
    kernel: Kernel

    def functions(self, name: str, body: Sequence[str], accesses: Sequence[Access]) -> Iterator[str]:
        """A function over a run of a row, for angles near zero or anywhere, and the one that calls it for each run.

        Args:
            name: Of the latter.
            body: Lines over the points from `begin` to `end`.
            accesses: The arguments of the kernel.
        """
        yield "template <Angles angles>"
        yield f"static void {name}_run(Size begin, Size end, void* const* row) {{"
        yield from (*body, "}", "", f"static void {name}(Size count, void* const* row) {{", *self._pointers(accesses))
        yield "  for (Size begin = 0; begin < count; begin += angle_run) {"
        yield "    const Size end = least(begin + angle_run, count);"
        yield from self._choice(f"{name}_run", "begin, end, row", ("begin", "end"), accesses, "    ")
        yield from ("  }", "}")

    def of_whole_row(
        self, name: str, body: Sequence[str], accesses: Sequence[Access], results: str = ""
    ) -> Iterator[str]:
        """The same over a row.

        Args:
            name: Of the function that chooses.
            body: Lines over the points from 0 to `count`.
            accesses: The arguments of the kernel.
            results: One more parameter, called `reductions`.
        """
        parameters = f"Size count, void* const* row{results and f', {results}'}"
        yield "template <Angles angles>"
        yield f"static void {name}_run({parameters}) {{"
        yield from (*body, "}", "", f"static void {name}({parameters}) {{", *self._pointers(accesses))
        arguments = f"count, row{results and ', reductions'}"
        yield from (*self._choice(f"{name}_run", arguments, ("0", "count"), accesses, "  "), "}")

    def _pointers(self, accesses: Sequence[Access]) -> Iterator[str]:
        names = {let.name for let in self.lets}
        for position, access in enumerate(accesses):
            if not (access.stored or access.is_scratch or names.isdisjoint(access.parts)):
                yield from access.pointer(position)

    def _choice(
        self, name: str, arguments: str, run: tuple[str, str], accesses: Sequence[Access], indent: str
    ) -> Iterator[str]:
        """The lines that find the farthest angle of a run, and call the function for it."""
        elements = {part: a.element(part) for a in accesses if a.whole_row and not a.is_scratch for part in a.parts}
        is_double = self.compared[0][1].dtype is DType.FLOAT64
        yield f"{indent}{'int64_t' if is_double else 'int32_t'} farthest = 0;"
        yield "#pragma omp simd reduction(max : farthest)"
        yield f"{indent}for (Size j = {run[0]}; j < {run[1]}; ++j) {{"
        for let in self.lets:
            if let.name in elements or not isinstance(let.value, Load):
                known = elements.get(let.name) or spell_value(let.value)
                yield f"{indent}  const {local_type(let.value)} {let.name} = {known};"
        for farther, value in self.compared:
            yield f"{indent}  farthest = {farther}(farthest, {spell_value(value)});"
        yield f"{indent}}}"
        yield f"{indent}if (are_near(farthest)) {name}<Angles::near>({arguments});"
        yield f"{indent}else {name}<Angles::anywhere>({arguments});"


def angles_of(kernel: Kernel) -> Angles | None:
    """The angles of a kernel that differ from point to point; None if there are none that can be looked at before."""
    along = kernel if kernel.row_axes else replace(kernel, row_axes=min(1, len(kernel.axes)))
    varying, axes = varying_locals(along), {axis.name for axis in row_axes(along)}
    found = [node for each in statements(kernel) for node in nodes(each.value) if _is_angular(node)]
    known = [node for node in found if varies(_angle(node), axes, varying) and _is_cheap(kernel, _angle(node))]
    chosen = [node for node in known if node.dtype is known[0].dtype]
    if not chosen:
        return None
    compared = tuple(dict.fromkeys((_comparison(node), _angle(node)) for node in chosen))
    lets = tuple(let for let in needed(kernel.lets, [value for _, value in compared]) if isinstance(let, Let))
    return Angles(compared, lets, _told(kernel, chosen))


def has_complex_angles(kernel: Kernel) -> bool:
    """Whether a kernel has functions of complex numbers that are told where the angles are."""
    told = OF_COMPLEX_ANGLES.values()
    seen = (node for each in statements(kernel) for node in nodes(each.value))
    return any(isinstance(node, Apply) and node.dtype.is_complex and node.function in told for node in seen)


def _is_angular(node: Expression) -> bool:
    return isinstance(node, Apply) and node.function in _TOLD.get(node.dtype, ())


def _comparison(node: Expression) -> str:
    """The function that compares how far an angle is; in exp it is the imaginary part."""
    return "farther_in_exp" if isinstance(node, Apply) and node.function == "exp" else "farther"


def _angle(node: Expression) -> Expression:
    assert isinstance(node, Apply)
    return node.operands[0]


def _is_cheap(kernel: Kernel, value: Expression) -> bool:
    lets = needed(kernel.lets, [value])
    seen = [node for each in (value, *(let.value for let in lets)) for node in nodes(each)]
    return not any(isinstance(let, Reduce) for let in lets) and not any(map(_is_angular, seen))


def _told(kernel: Kernel, chosen: Sequence[Expression]) -> Kernel:
    """A kernel some of whose functions of angles are told where these are."""

    def rewritten(value: Expression) -> Expression:
        value = rewrite_children(value, rewritten)
        if value in chosen:
            assert isinstance(value, Apply)
            return replace(value, function=_TOLD[value.dtype][value.function])
        return value

    lets = tuple(let if isinstance(let, Gather) else replace(let, value=rewritten(let.value)) for let in kernel.lets)
    return replace(kernel, lets=lets, stores=tuple(replace(s, value=rewritten(s.value)) for s in kernel.stores))
