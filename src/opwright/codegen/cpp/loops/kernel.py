"""A kernel as C++: row functions with the arithmetic, and the lines of the launcher that call them for every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from opwright.codegen.cpp.expression import CPP_TYPES, TRANSCENDENTAL, spell_value
from opwright.codegen.cpp.loops.access import Access, accesses_of, handed_over, store_names
from opwright.codegen.cpp.loops.angles import angles_of, has_complex_angles
from opwright.codegen.cpp.loops.blends import is_mask, with_blends, with_choices
from opwright.codegen.cpp.loops.divisors import local_type, with_divisors
from opwright.codegen.cpp.loops.lanes import lanes_function
from opwright.codegen.cpp.loops.narrow import with_narrow_functions
from opwright.codegen.cpp.loops.pieces import is_long, pieces_of, with_results
from opwright.codegen.cpp.loops.reductions import column_reducer
from opwright.codegen.cpp.loops.rows import RowEmitter, column_functions, is_settled
from opwright.codegen.cpp.loops.shared_functions import SharedFunctions
from opwright.codegen.cpp.loops.stages import Stage, given_back, in_stages, stage_loops, stages_of
from opwright.codegen.cpp.loops.work import quick_stores
from opwright.codegen.cpp.size import spell_size
from opwright.ir.contents import needed, reducing_stores
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Apply, Expression, Load, children
from opwright.ir.expressions.integer import ONE, symbols_of
from opwright.ir.phases import schedule
from opwright.ir.program import Kernel, Let

# Work, in units of about 0.02 ns per element, below which a second thread costs more than it saves (6 µs).
_WORK_OF_ONE_THREAD = 280_000
_LEAST_GRAIN, _MOST_GRAIN = 1024, 262_144
_TRANSCENDENTAL_COST = 8
# The same for all kernels of rows, which come in pairs, forward and backward: if one of a pair runs on several threads
# and the other on one, the idle threads keep spinning (10 µs of 34 on two threads of one core).
_GRAIN_OF_ROWS = 8192


class KernelEmitter:
    """Writes one kernel: its functions, and the lines of the launcher that run it.

    Args:
        kernel: A fused kernel whose loads are all bound to names.
        iotas: Buffers that are iotas.
    """

    def __init__(self, kernel: Kernel, iotas: Set[str]) -> None:
        self.kernel = kernel = with_narrow_functions(kernel)
        self.accesses = accesses_of(kernel, iotas)
        self.in_pieces = _is_reduced_in_pieces(kernel)
        self.quick = quick_stores(kernel)
        self._rows = self._emitter_of_rows(kernel) if kernel.row_axes else None

    def functions(self, name: str, formulas: Sequence[str], shared: SharedFunctions) -> list[str]:
        """The arithmetic of the kernel: the functions under its name come last, in one text.

        Args:
            name: The name of the row function, and the prefix of the other names.
            formulas: Comment lines to put above it.
            shared: The functions of the source.
        """
        kernel, before, parts = self.kernel, list[str](), list[str]()
        if any(map(_has_elements_of_parts, self.accesses)):
            kernel = with_choices(kernel)
        if self._rows is None:
            *before, function = _point_functions(kernel, self.accesses, name, formulas, shared)
            parts.append(function)
        else:
            shown = with_divisors(with_blends(kernel))
            shown = in_stages(shown) if self.in_pieces else shown
            rows = self._emitter_of_rows(shown, by_angles=True, settled=is_settled(kernel))
            write = rows.reduce_functions if self.in_pieces else rows.whole_row_function
            parts.append(write(name, formulas))
            if kernel.short_rows:
                plain = self._rows if kernel is self.kernel else self._emitter_of_rows(kernel)
                parts.append(lanes_function(plain, f"{name}_lanes"))
        if reducing_stores(kernel):
            parts.append(column_functions(kernel, name))
        return [*before, "\n\n".join(parts)]

    def _emitter_of_rows(self, kernel: Kernel, *, by_angles: bool = False, settled: bool = False) -> RowEmitter:
        """For this kernel or a rewritten one, which loads and stores the same: the launcher hands that over."""
        return RowEmitter(
            kernel, self.accesses, self.quick, in_pieces=self.in_pieces, by_angles=by_angles, settled=settled
        )

    def launch(self, function: str, numbers: Set[str]) -> list[str]:
        """The lines of the launcher that run the kernel.

        Args:
            function: The name of its row function.
            numbers: Buffers that are variables.
        """
        kernel, in_pieces = self.kernel, self.in_pieces
        axes = _axes_handed_over(kernel)
        accesses = self._rows.accesses if self._rows else handed_over(self.accesses)
        by_walks = {store_names(kernel)[k] for k in self.quick} if in_pieces or not kernel.row_axes else set()
        extents = ", ".join([*["1"] * (axes - len(kernel.axes)), *(spell_size(axis.extent) for axis in kernel.axes)])
        operands = [access for access in accesses if access.accumulated is None]
        results = [access for access in accesses if access.accumulated is not None]
        lines = ["{", f"  const Size extents[] = {{{extents}}};"]
        places = {access.name: position for position, access in enumerate(operands) if access.extent is not None}
        if operands:
            kind = f"Operand<{axes}, true>" if places else f"Operand<{axes}>"
            lines.append(f"  const {kind} operands[] = {{")
            lines += [f"      {_operand(access, axes, numbers, places, by_walks)}," for access in operands]
            lines.append("  };")
        if results:
            kept_as = ", ".join(f"sizeof({access.accumulated})" for access in results)
            lines.append(f"  const Size kept[] = {{{kept_as}}};")
            lines.append(f"  const Operand<{axes}> results[] = {{")
            lines += [f"      {_operand(access, axes, numbers, {})}," for access in results]
            lines.append("  };")
            lanes = f", {function}_lanes" if kernel.short_rows else ", nullptr" if is_settled(kernel) else ""
            settle = f", {function}_settle" if is_settled(kernel) else ""
            functions = f"{{{function}_start, {function}_combine, {function}_end{lanes}{settle}}}"
            geometry = f"{_axes_before_reduction(kernel)}, {kernel.row_axes}"
            given = "extents, operands" if operands else "extents"
            arguments = f"{given}, kept, results, {geometry}, {grain(kernel)}, {function}, {functions}"
            lines.append(f"  reduce_columns({arguments});")
        elif kernel.row_axes == 0:
            lines.append(f"  for_each_row(extents, operands, {grain(kernel)}, {function});")
        else:
            given = f"extents, operands, {kernel.row_axes}, {grain(kernel)}"
            called = f"for_each_whole_row({given}, {function})"
            if in_pieces:
                called = f"reduce_rows<{function}_reductions, {function}, {function}_end>({given})"
            if kernel.short_rows:
                lines.append(f"  if (!in_lanes({given}, {function}_lanes))")
            lines.append(f"  {'  ' if kernel.short_rows else ''}{called};")
        return [*lines, "}"]


def _has_elements_of_parts(access: Access) -> bool:
    """Whether neighbours in memory are parts of one element, which GCC reads as groups (0056)."""
    return len(access.parts) > 1 or access.dtype.is_complex


def _point_functions(
    kernel: Kernel, found: Sequence[Access], name: str, formulas: Sequence[str], shared: SharedFunctions
) -> list[str]:
    """A function over one row of a kernel with independent points, after those for pieces of a long body."""
    kernel = with_divisors(kernel)
    accesses = handed_over(found)
    comments = [f"// {formula}" for formula in formulas]
    pointers = [line for position, access in enumerate(accesses) for line in access.pointer(position)]
    elements = {part: access.element(part) for access in found for part in access.parts if access.whole_row}
    lets, names = [let for let in kernel.lets if isinstance(let, Let)], store_names(kernel)
    values: list[Expression] = [store.value for store in kernel.stores]
    if not is_long(lets, values):
        kernel = with_blends(kernel)
        if angles := angles_of(kernel):
            body = [*pointers, *_short_body(angles.kernel, elements, "begin", "end")]
            return ["\n".join([*comments, *angles.functions(name, body, accesses)])]
        kernel = in_stages(kernel)
        head = f"static void {name}(Size count, void* const* row) {{"
        return ["\n".join([*comments, head, *pointers, *_short_body(kernel, elements, "0", "count"), "}"])]
    lines = [*comments, f"static void {name}(Size count, void* const* row) {{", *pointers]
    lets, values = with_results(lets, names, values)
    pieces = pieces_of(lets, values)
    rows = {part: access for access in accesses for part in access.parts}
    functions = []
    lines.append("  for (Size begin = 0; begin < count; begin += piece_run) {")
    lines.append("    const Size end = least(begin + piece_run, count);")
    for piece in pieces:
        stored = names if piece is pieces[-1] else ()
        given = dict.fromkeys(rows[part].argument for part in (*(let.name for let in piece.loads), *stored))
        given |= {(f"const {local_type(let.value)}*", f"{let.name}_kept"): None for let in piece.given}
        given |= {(f"{local_type(let.value)}*", f"{let.name}_kept"): None for let in piece.kept}
        called = shared.new_name()
        parameters = ", ".join(f"{kind} {each}" for kind, each in given)
        body = _assigned(piece.loads, elements)
        body += [f"const {local_type(let.value)} {let.name} = {let.name}_kept[j - begin];" for let in piece.given]
        body += _assigned(piece.lets, elements)
        body += [f"{let.name}_kept[j - begin] = {let.name};" for let in piece.kept]
        body += _written(kernel, elements, values) if stored else []
        head = f"__attribute__((noinline)) static void {called}(Size begin, Size end, {parameters}) {{"
        function = "\n".join([head, *_loop("begin", "end", body, "  "), "}"])
        if (known := shared.name_of(function, called)) == called:
            functions.append(function)
        lines += [f"    {local_type(let.value)} {let.name}_kept[piece_run];" for let in piece.kept]
        lines.append(f"    {known}(begin, end, {', '.join(each for _, each in given)});")
    return [*functions, "\n".join([*lines, "  }", "}"])]


def _short_body(kernel: Kernel, elements: Mapping[str, str], begin: str, end: str) -> list[str]:
    """A loop over a run of a row, after what the masks of blends need."""
    lets = [let for let in kernel.lets if isinstance(let, Let)]
    masks = {let.name for let in lets if is_mask(let)}
    once = [let for let in needed(lets, [let.value for let in lets if is_mask(let)]) if isinstance(let, Let)]
    before = [let for let in lets if let in once or let.name in masks]
    results = [store.value for store in kernel.stores]
    inside = [let for let in lets if let not in before]
    *first, last = stages_of(kernel, inside, results) if begin == "0" else [Stage((), tuple(inside), ())]
    body = [*given_back(last), *_assigned(last.lets, elements), *_written(kernel, elements, results)]
    if first:
        loops = [*stage_loops(first, elements), *_loop("begin", "end", body, "")]
        body = ["const Size end = least(begin + sum_run, count);", *loops]
        return [
            *(f"  {line}" for line in _assigned(before, elements)),
            "  for (Size begin = 0; begin < count; begin += sum_run) {",
            *(line if line.startswith("#") else f"    {line}" for line in body),
            "  }",
        ]
    return [*(f"  {line}" for line in _assigned(before, elements)), *_loop(begin, end, body, "  ")]


def _assigned(lets: Sequence[Let], elements: Mapping[str, str]) -> list[str]:
    """The lines that compute values at a point, or read them there; what is uniform over the row is known."""
    return [
        f"const {local_type(let.value)} {let.name} = {elements.get(let.name) or spell_value(let.value)};"
        for let in lets
        if let.name in elements or not isinstance(let.value, Load)
    ]


def _written(kernel: Kernel, elements: Mapping[str, str], values: Sequence[Expression]) -> list[str]:
    """The lines that store values at a point."""
    written = []
    whole = has_complex_angles(kernel)
    for name, store, value in zip(store_names(kernel), kernel.stores, values, strict=True):
        step = "store_whole({}, {});" if whole and value.dtype is DType.COMPLEX64 else "{} = {};"
        step = step if store.reduction is None else column_reducer(store.reduction, value.dtype).step
        written.append(step.format(elements[name], spell_value(value)))
    return written


def _loop(begin: str, end: str, body: Sequence[str], indent: str) -> list[str]:
    head = f"{indent}for (Size j = {begin}; j < {end}; ++j) {{"
    return ["#pragma omp simd", head, *(f"{indent}  {line}" for line in body), f"{indent}}}"]


def _axes_handed_over(kernel: Kernel) -> int:
    """A kernel with rows has at least one outer axis, perhaps of one element."""
    return max(len(kernel.axes), kernel.row_axes + 1 if kernel.row_axes else 1)


def _operand(
    access: Access, axes: int, numbers: Set[str], indices: Mapping[str, int], quick: Set[str] = frozenset()
) -> str:
    """An operand in C++; `indices` are the positions of those that hold indices, `quick` the names of quick results."""
    if access.past_of is not None:
        return f"past<{axes}, {CPP_TYPES[access.dtype]}>({access.past_of})"
    if access.is_scratch:
        return f"scratch<{axes}, {CPP_TYPES[access.dtype]}>()"
    strides = ", ".join([*["0"] * (axes - len(access.strides)), *access.strides])
    whole = "" if access.whole_row else ", false"
    qualifier = "" if access.stored else "const "
    place = f"{access.buffer}.at<{qualifier}{CPP_TYPES[access.dtype]}>({access.offset})"
    if access.buffer in numbers:
        place = f"&{access.buffer}"
    if access.extent is not None:
        return f"indices<{axes}>({place}, {{{strides}}}, {access.extent or 0})"
    operand = f"{'store' if access.stored else 'load'}<{axes}>({place}, {{{strides}}}{whole})"
    if access.iota:
        operand = f"iota<{axes}>({access.offset}, {{{strides}}}{whole})"
    if access.whole_row and not quick.isdisjoint(access.parts):
        operand = f"quick({operand})"
    parts = len(access.parts)
    if access.gathered_by:
        return f"gathered({operand}, {indices[access.gathered_by]}, {access.gather_stride})"
    return operand if parts == 1 else f"in_parts({operand}, {parts}, {access.part_stride})"


def _is_reduced_in_pieces(kernel: Kernel) -> bool:
    """Whether rows can be cut into pieces: a single pass computes everything."""
    return kernel.row_axes > 0 and not reducing_stores(kernel) and schedule(kernel).is_single


def _axes_before_reduction(kernel: Kernel) -> int:
    """The number of axes before the first reduced one."""
    kept = {name for store in reducing_stores(kernel) for index in store.indices for name in symbols_of(index)}
    return next(k for k, axis in enumerate(kernel.axes) if axis.name not in kept and axis.extent != ONE)


def grain(kernel: Kernel) -> int:
    """The least number of elements for one thread."""
    if kernel.row_axes:
        return _GRAIN_OF_ROWS
    values = [let.value for let in kernel.lets] + [store.value for store in kernel.stores]
    cost = sum(map(_cost, values))
    return max(_LEAST_GRAIN, min(_MOST_GRAIN, _WORK_OF_ONE_THREAD // max(cost, 1)))


def _cost(expression: Expression) -> int:
    own = 1
    if isinstance(expression, Apply) and expression.function in TRANSCENDENTAL:
        own = _TRANSCENDENTAL_COST
    return own + sum(_cost(child) for child in children(expression))
