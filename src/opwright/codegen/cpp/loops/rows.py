"""A kernel with rows as C++: several passes over a row, or reductions of pieces of a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace

from opwright.codegen.cpp.expression import CPP, CPP_TYPES, Dialect, is_costly, is_transcendental, spell_value
from opwright.codegen.cpp.loops.access import (
    Access,
    handed_over,
    scratch_of,
    store_names,
    widened,
    with_past,
)
from opwright.codegen.cpp.loops.angles import angles_of
from opwright.codegen.cpp.loops.divisors import local_type
from opwright.codegen.cpp.loops.reductions import ReducerSpelling, column_reducer, row_reducer
from opwright.codegen.cpp.loops.stages import given_back, stage_loops, stages_of
from opwright.ir.contents import locals_in, reducing_stores
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Expression, Load, Local
from opwright.ir.phases import Phase, Schedule, needed_lets, schedule
from opwright.ir.program import Kernel, Let, Reduce, Store
from opwright.ir.rows import varying_locals


class RowEmitter:
    """Writes the functions of one kernel with rows.

    Args:
        kernel: The kernel.
        found: What it loads and stores.
        quick: The positions of its stores that are computed in less time than memory takes.
        in_pieces: Whether rows are cut into pieces.
        by_angles: Whether to write two functions, for rows of small angles and for others.
        settled: Whether accumulators are float for a few rows.

    Attributes:
        schedule: Its passes.
        names: Of its stores, by identity.
        kept: Values that one pass keeps for a later one.
        widened: Scratch rows for truth values.
        accesses: The arguments of its functions: loads, stores, scratch rows, accumulators.
    """

    def __init__(
        self,
        kernel: Kernel,
        found: Sequence[Access],
        quick: Set[int],
        *,
        in_pieces: bool,
        by_angles: bool = False,
        settled: bool = False,
    ) -> None:
        self._angles = angles_of(kernel) if by_angles else None
        self.kernel = kernel = self._angles.kernel if self._angles else kernel
        self.schedule: Schedule = schedule(kernel)
        self.varying = varying_locals(kernel)
        self.kept = kept_between_passes(kernel, self.schedule, self.varying, is_costly)
        self.names = {id(store): name for store, name in zip(kernel.stores, store_names(kernel), strict=True)}
        self._elements = {part: access.element(part) for access in found for part in access.parts}
        truths = [a for a in found if a.is_read_as_bytes and len(a.parts) == 1 and not in_pieces]
        self.widened = [widened(kernel, access) for access in truths]
        self._elements |= {access.name: f"{access.name}_kept_row[j] != 0" for access in truths}
        self.accesses = handed_over([*found, *(scratch_of(kernel, let) for let in self.kept), *self.widened])
        if settled:
            self.accesses = tuple(replace(a, accumulated=a.accumulated and "float") for a in self.accesses)
        if not in_pieces:
            self.accesses = with_past(self.accesses, {self.names[id(kernel.stores[k])] for k in quick})
        self._past = {access.name: access for access in self.accesses if access.past_of is not None}

    def whole_row_function(self, name: str, formulas: Sequence[str]) -> str:
        """A function over one row, in as many passes as its reductions need."""
        lines = [*self._pointers(self.accesses)]
        for access in self.widened:
            lines.append(f"  widen({access.name}_row, count, {access.name}_kept_row);")
        lines += _bindings(self.schedule.before)
        known: set[str] = set()
        for phase in self.schedule.phases:
            lines += self._pass(phase, known, in_parts=True)
            for reduction in phase.reductions:
                spelling = row_reducer(reduction.function, reduction.value.dtype)
                lines.append(
                    f"  const {local_type(reduction.value)} {reduction.name}"
                    f" = {spelling.end.format(kept_name(reduction))};"
                )
            lines += _bindings(phase.after)
            known |= {let.name for let in phase.lets if let in self.kept}
        lines += [f"  *{self.names[id(store)]} = {spell_value(store.value)};" for store in self.schedule.once]
        return "\n".join([*(f"// {formula}" for formula in formulas), *self._over_row(name, lines)])

    def reduce_functions(self, name: str, formulas: Sequence[str]) -> str:
        """The reductions of a row, a function that reduces a piece, and one for the end of the row."""
        (phase,) = self.schedule.phases
        spellings = spellings_of(phase)
        fields = [f"  {spellings[f.name].kept_as} {f.name} = {spellings[f.name].start};" for f in phase.reductions]
        adds = [spellings[f.name].step.format(f.name, f"other.{f.name}") for f in phase.reductions]
        # Packages link the sources of an operator for several dtypes, whose structs have the same name.
        lines = ["namespace {", f"struct {name}_reductions {{", *fields]
        lines += [f"  void add(const {name}_reductions& other) {{", *(f"    {add}" for add in adds), "  }", "};"]
        lines += ["}  // namespace", ""]
        lines += [f"// {formula}" for formula in formulas]
        body = [*self._pointers(self._used_in(phase)), *_bindings(self._needed_before(phase))]
        # A buffer of summands costs more than summing in double precision, unless these take long to compute.
        lets = needed_lets(self.kernel, phase.values, self.varying, set())
        in_parts = any(map(is_transcendental, (*(let.value for let in lets), *phase.values)))
        body += self._pass(phase, set(), in_parts=in_parts)
        body += [f"  {spellings[f.name].step.format(f'reductions.{f.name}', kept_name(f))}" for f in phase.reductions]
        lines += self._over_row(name, body, f"{name}_reductions& reductions")
        lines += ["", f"static void {name}_end(void* const* row, const {name}_reductions& reductions) {{"]
        lines += self._pointers(self._used_after(phase))
        for reduction in phase.reductions:
            end = spellings[reduction.name].end.format(f"reductions.{reduction.name}")
            lines.append(f"  const {local_type(reduction.value)} {reduction.name} = {end};")
        lines += _bindings(self._fixed_for([store.value for store in self.schedule.once]))
        lines += [f"  *{self.names[id(store)]} = {spell_value(store.value)};" for store in self.schedule.once]
        return "\n".join([*lines, "}"])

    def _over_row(self, name: str, body: Sequence[str], results: str = "") -> Iterable[str]:
        """A function over a row, or two and one that chooses by the angles of the row."""
        if self._angles:
            return self._angles.of_whole_row(name, body, self.accesses, results)
        return [f"static void {name}(Size count, void* const* row{results and f', {results}'}) {{", *body, "}"]

    def _pass(self, phase: Phase, known: set[str], *, in_parts: bool) -> Iterable[str]:
        spellings = spellings_of(phase)
        for reduction in phase.reductions:
            yield f"  {spellings[reduction.name].kept_as} {kept_name(reduction)} = {spellings[reduction.name].start};"
        in_runs = {reduction.name for reduction in phase.reductions if in_parts and spellings[reduction.name].part}
        past = [name for store in phase.stores if (name := self.names[id(store)]) in self._past]
        if not in_runs:
            lines: Iterable[str] = _indented(self._loop(phase, known, spellings, in_runs))
            yield from self._runs(lines, past) if past else lines
            return
        lying = {
            reduction.name: row
            for reduction in phase.reductions
            if reduction.name in in_runs and (row := self._row_of(reduction, known))
        }
        rest = replace(
            phase, reductions=tuple(reduction for reduction in phase.reductions if reduction.name not in lying)
        )
        parts = [
            reduction
            for reduction in rest.reductions
            if reduction.name in in_runs and not self._is_kept(reduction.value)
        ]
        yield "  for (Size begin = 0; begin < count; begin += sum_run) {"
        yield "    const Size end = least(begin + sum_run, count);"
        yield from (
            f"    {kept_name(reduction)} += sum_of({lying[reduction.name]} + begin, end - begin);"
            for reduction in phase.reductions
            if reduction.name in lying
        )
        yield from (f"    {spellings[reduction.name].part} {reduction.name}_part[sum_run];" for reduction in parts)
        yield from _indented(self._begin_past(past))
        if rest.values:
            yield from _indented(_indented(self._loop(rest, known, spellings, in_runs)))
        yield from _indented(_end_past(past))
        for reduction in (reduction for reduction in rest.reductions if reduction.name in in_runs):
            part = f"{reduction.name}_part" if reduction in parts else f"{_name_of(reduction.value)}_kept_row + begin"
            yield f"    {kept_name(reduction)} += sum_of({part}, end - begin);"
        yield "  }"

    def _runs(self, lines: Iterable[str], past: Sequence[str]) -> Iterable[str]:
        """A pass over a row, run by run if results go past the caches."""
        chosen = " || ".join(f"{name}_past" for name in past)
        yield f"  for (Size begin = 0, run = {chosen} ? sum_run : count; begin < count; begin += run) {{"
        yield "    const Size end = least(begin + run, count);"
        yield from _indented(self._begin_past(past))
        yield from _indented(lines)
        yield from _indented(_end_past(past))
        yield "  }"

    def _begin_past(self, past: Sequence[str]) -> Iterable[str]:
        for name in past:
            kind = CPP_TYPES[self._past[name].dtype]
            yield f"  {kind}* {name}_run = {name}_past ? {name}_past : {name}_row + begin;"

    def _loop(
        self, phase: Phase, known: Set[str], spellings: Mapping[str, ReducerSpelling], in_runs: Set[str]
    ) -> Iterable[str]:
        """A loop over the row, or over a run of it; summands of a run are written to the buffer that is added up."""
        reduced = [reduction for reduction in phase.reductions if reduction.name not in in_runs]
        clauses = [f" reduction({spellings[reduction.name].clause} : {kept_name(reduction)})" for reduction in reduced]
        lets = needed_lets(self.kernel, phase.values, self.varying, known)
        stages = stages_of(self.kernel, lets, phase.values) if in_runs and not self.kept else ()
        yield from stage_loops(stages[:-1], self._elements)
        yield f"#pragma omp simd{''.join(clauses)}"
        runs = in_runs or any(self.names[id(store)] in self._past for store in phase.stores)
        yield f"for (Size j = {'begin' if runs else '0'}; j < {'end' if runs else 'count'}; ++j) {{"
        if stages:
            yield from _indented(given_back(stages[-1]))
            lets = stages[-1].lets
        yield from _indented(self._at_point(phase, lets, known))
        for reduction in phase.reductions:
            value = spell_value(reduction.value)
            if reduction.name not in in_runs:
                yield from _indented(
                    reducing_step(spellings[reduction.name], kept_name(reduction), value, reduction.name)
                )
            elif not self._is_kept(reduction.value):
                yield f"  {reduction.name}_part[j - begin] = {value};"
        for store in phase.stores:
            name, value = self.names[id(store)], spell_value(store.value)
            place = f"{name}_run[j - begin]" if name in self._past else self._elements[name]
            written = f"{place} = {value};"
            if store.reduction is not None:
                written = column_reducer(store.reduction, store.value.dtype).step.format(place, value)
            yield f"  {written}"
        yield "}"

    def _at_point(self, phase: Phase, lets: Sequence[Let], known: Set[str]) -> Iterable[str]:
        """The values at one point; those that an earlier pass kept are read again."""
        seen = {local.name for local in locals_in(*phase.values, *(let.value for let in lets))}
        for let in self.kept:
            if let.name in known and let.name in seen:
                yield f"const {local_type(let.value)} {let.name} = {let.name}_kept_row[j];"
        for let in lets:
            value = self._elements[let.name] if isinstance(let.value, Load) else spell_value(let.value)
            yield f"const {local_type(let.value)} {let.name} = {value};"
            if let in self.kept:
                yield f"{let.name}_kept_row[j] = {let.name};"

    def _row_of(self, reduction: Reduce, known: Set[str]) -> str | None:
        """The row that holds the values of a reduction before a pass; None if the pass must compute them."""
        name = _name_of(reduction.value)
        if name in known:
            return f"{name}_kept_row"
        loads = (access for access in self.accesses if access.whole_row and not (access.stored or access.is_scratch))
        return next((f"{access.name}_row" for access in loads if access.parts == (name,)), None)

    def _is_kept(self, value: Expression) -> bool:
        """Whether a pass keeps these values in a scratch row, where they can be summed."""
        return any(let.name == _name_of(value) for let in self.kept)

    def _pointers(self, accesses: Sequence[Access]) -> Iterable[str]:
        return (line for access in accesses for line in access.pointer(self.accesses.index(access)))

    def _used_in(self, phase: Phase) -> list[Access]:
        values = [*(let.value for let in phase.lets), *phase.values]
        return self._used([*self._fixed_for(values), *phase.lets], phase.stores)

    def _used_after(self, phase: Phase) -> list[Access]:
        return self._used(self._fixed_for([store.value for store in self.schedule.once]), self.schedule.once)

    def _used(self, lets: Sequence[Let | Reduce], kept: Sequence[Store]) -> list[Access]:
        wanted, stored = {let.name for let in lets}, {self.names[id(store)] for store in kept}
        return [a for a in self.accesses if not (stored if a.stored else wanted).isdisjoint(a.parts)]

    def _needed_before(self, phase: Phase) -> list[Let]:
        return self._fixed_for([*(let.value for let in phase.lets), *phase.values])

    def _fixed_for(self, values: Sequence[Expression]) -> list[Let]:
        """The lets these values depend on that are uniform over the row."""
        fixed = {let.name for let in self.kernel.lets if isinstance(let, Let)} - self.varying
        return list(needed_lets(self.kernel, values, fixed))


def spellings_of(phase: Phase, dialect: Dialect = CPP) -> dict[str, ReducerSpelling]:
    """How what a phase reduces is spelled, by the names of the reductions."""
    return {f.name: row_reducer(f.function, f.value.dtype, dialect) for f in phase.reductions}


def kept_between_passes(
    kernel: Kernel, order: Schedule, varying: Set[str], costs: Callable[[Expression], bool]
) -> tuple[Let, ...]:
    """Values of a point that cost much and that a later pass over the row needs again."""
    costly = {let.name for let in kernel.lets if let.name in varying and costs(let.value)}
    met: set[str] = set()
    again: set[str] = set()
    for phase in order.phases:
        lets = needed_lets(kernel, phase.values, varying, again & met)
        names = {let.name for let in lets} & costly
        again |= names & met
        met |= names
    return tuple(let for let in kernel.lets if isinstance(let, Let) and let.name in again)


def is_settled(kernel: Kernel) -> bool:
    """Whether sums of columns beside rows are added up in float for a few rows, and then in double precision."""
    sums = reducing_stores(kernel)
    return kernel.row_axes > 0 and all(each.reduction == "sum" and each.value.dtype is DType.FLOAT32 for each in sums)


def column_functions(kernel: Kernel, name: str) -> str:
    """The functions for accumulators of reducing stores: start, combine and end, and settle where there is one."""
    reducing = reducing_stores(kernel)
    spellings = [column_reducer(store.reduction or "", store.value.dtype) for store in reducing]
    names = [
        name for store, name in zip(kernel.stores, store_names(kernel), strict=True) if store.reduction is not None
    ]
    triples = list(zip(range(len(reducing)), names, spellings, strict=True))
    totals = [_row(k, s.kept_as, f"{n}_total") for k, n, s in triples]
    others = [_row(len(reducing) + k, f"const {s.kept_as}", f"{n}_other") for k, n, s in triples]
    some = [_row(len(reducing) + k, "float", f"{n}_some") for k, n, _ in triples]
    ends = [_row(len(reducing) + k, local_type(store.value), names[k]) for k, store in enumerate(reducing)]
    parts = [
        ("start", totals, [f"{n}_total[j] = {s.start};" for _, n, s in triples]),
        ("combine", totals + others, [s.step.format(f"{n}_total[j]", f"{n}_other[j]") for _, n, s in triples]),
        ("end", totals + ends, [f"{n}[j] = {s.end.format(f'{n}_total[j]')};" for _, n, s in triples]),
    ]
    if is_settled(kernel):
        parts.append(
            ("settle", totals + some, [f"{n}_total[j] += {n}_some[j], {n}_some[j] = 0;" for _, n, _ in triples])
        )
    return "\n\n".join(
        "\n".join(
            [f"static void {name}_{part}(Size count, void* const* row) {{", *pointers, "#pragma omp simd",
             "  for (Size j = 0; j < count; ++j) {", *(f"    {line}" for line in body), "  }", "}"]
        )
        for part, pointers, body in parts
    )  # fmt: skip


def _row(position: int, kind: str, name: str) -> str:
    return f"  {kind}* {name} = static_cast<{kind}*>(row[{position}]);"


def _indented(lines: Iterable[str]) -> Iterable[str]:
    """Indent lines by two columns, except preprocessor directives."""
    return (line if line.startswith("#") else f"  {line}" for line in lines)


def reducing_step(spelling: ReducerSpelling, kept: str, value: str, name: str) -> Iterable[str]:
    """Statements that reduce a value into what is kept."""
    reduced = spelling.value.format(value)
    if spelling.step.count("{1}") > 1:
        yield f"const {spelling.kept_as} {name}_next = {reduced};"
        reduced = f"{name}_next"
    yield spelling.step.format(kept, reduced)


def _end_past(past: Sequence[str]) -> Iterable[str]:
    return (f"  go_past({name}_past, {name}_row + begin, end - begin);" for name in past)


def _bindings(lets: Iterable[Let]) -> Iterable[str]:
    for let in lets:
        if not isinstance(let.value, Load):
            yield f"  const {local_type(let.value)} {let.name} = {spell_value(let.value)};"


def _name_of(value: Expression) -> str | None:
    return value.name if isinstance(value, Local) else None


def kept_name(reduction: Reduce) -> str:
    """The name of the accumulator of a row reduction."""
    match reduction.function:
        case "maximum":
            return f"{reduction.name}_largest"
        case "minimum":
            return f"{reduction.name}_smallest"
        case "any" | "all":
            return f"{reduction.name}_found"
        case _:
            return f"{reduction.name}_total"
