"""The function of a kernel with rows that takes sixteen of them, one in each lane of a vector.

It does what the function for one row does. What has one value for a row there is an array here, of a value for each
lane, and every reduction has as many accumulators.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from opwright.codegen.cpp.expression import CPP_TYPES, spell_value
from opwright.codegen.cpp.loops.access import Access
from opwright.codegen.cpp.loops.reductions import column_reducer
from opwright.codegen.cpp.loops.rows import RowEmitter, kept_name, reducing_step, spellings_of
from opwright.ir.contents import locals_in
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Expression, Load, Local
from opwright.ir.phases import Phase, needed_lets
from opwright.ir.program import Let, Reduce, Store


@dataclass(frozen=True, slots=True)
class _Ends:
    """What is computed once for a row, between passes: reductions end, other values and stores follow."""

    reductions: tuple[Reduce, ...]
    lets: tuple[Let, ...]
    stores: tuple[Store, ...] = ()

    @property
    def named(self) -> tuple[Let | Reduce, ...]:
        return (*self.reductions, *self.lets)

    @property
    def values(self) -> tuple[Expression, ...]:
        return (*(let.value for let in self.lets), *(store.value for store in self.stores))


def lanes_function(rows: RowEmitter, name: str) -> str:
    """A function over sixteen rows."""
    return "\n".join(_LanesEmitter(rows).function(name))


class _LanesEmitter:
    def __init__(self, rows: RowEmitter) -> None:
        self.rows = rows
        order = rows.schedule
        blocks: list[Phase | _Ends] = [_Ends((), _computed(order.before))]
        for phase in order.phases:
            blocks += [phase, _Ends(phase.reductions, _computed(phase.after))]
        last = blocks[-1]
        assert isinstance(last, _Ends)
        self.blocks = [*blocks[:-1], replace(last, stores=order.once)]
        self.by_row = {part: _kind(access.dtype) for access in rows.accesses if not access.whole_row
                       for part in access.parts if not access.stored}  # fmt: skip
        self.by_row |= {let.name: _kind(let.value.dtype) for block in self.blocks if isinstance(block, _Ends)
                        for let in block.named}  # fmt: skip
        self.known: set[str] = set()

    def function(self, name: str) -> Iterable[str]:
        yield "// The same for sixteen rows, one in each lane of a vector."
        yield f"static void {name}(Size count, void* const* row, const Size* steps) {{"
        for position, access in enumerate(self.rows.accesses):
            if access not in self.rows.widened:
                yield from _pointer(access, position)
        for position, block in enumerate(self.blocks):
            match block:
                case Phase():
                    yield from self._pass(block)
                case _Ends():
                    read_later = {name for later in self.blocks[position + 1 :] for name in self._read_by(later)}
                    yield from self._ends(block, read_later)
        yield "}"

    def _pass(self, phase: Phase) -> Iterable[str]:
        spellings, rows = spellings_of(phase), self.rows
        if phase.reductions:
            yield from (f"  {spellings[f.name].kept_as} {kept_name(f)}[lanes];" for f in phase.reductions)
            yield from _loop(f"{kept_name(f)}[l] = {spellings[f.name].start};" for f in phase.reductions)
        lets = self._lets(phase)
        again = {let for let in rows.kept if let.name in self.known}
        body = [*self._bindings(locals_in(*phase.values, *(let.value for let in lets)))]
        seen = self._read_by(phase)
        body += [f"const {_kind(let.value.dtype)} {let.name} = {_kept(let)};" for let in rows.kept
                 if let in again and let.name in seen]  # fmt: skip
        for let in lets:
            value = self._element(let.name) if isinstance(let.value, Load) else spell_value(let.value)
            body.append(f"const {_kind(let.value.dtype)} {let.name} = {value};")
            body += [f"{_kept(let)} = {let.name};"] if let in rows.kept else []
        for reduction in phase.reductions:
            kept, value = f"{kept_name(reduction)}[l]", spell_value(reduction.value)
            body += reducing_step(spellings[reduction.name], kept, value, reduction.name)
        for store in phase.stores:
            place, value = self._element(rows.names[id(store)]), spell_value(store.value)
            reducer = store.reduction and column_reducer(store.reduction, store.value.dtype)
            body.append(reducer.step.format(place, value) if reducer else f"{place} = {value};")
        yield "  for (Size j = 0; j < count; ++j) {"
        yield from _loop(body, "    ")
        yield "  }"
        self.known |= {let.name for let in phase.lets if let in rows.kept}

    def _ends(self, ends: _Ends, read_later: set[str]) -> Iterable[str]:
        made = [each for each in ends.named if each.name in read_later]
        yield from (_array(each.name, each.value.dtype) for each in made)
        own = {each.name for each in ends.named}
        body = [*self._bindings(local for local in locals_in(*ends.values) if local.name not in own)]
        for reduction in ends.reductions:
            phase = Phase((), (reduction,), (), ())
            end = spellings_of(phase)[reduction.name].end.format(f"{kept_name(reduction)}[l]")
            body.append(f"const {_kind(reduction.value.dtype)} {reduction.name} = {end};")
        body += [f"const {_kind(let.value.dtype)} {let.name} = {spell_value(let.value)};" for let in ends.lets]
        body += [f"{each.name}_lanes[l] = {each.name};" for each in made]
        body += [f"{self.rows.names[id(store)]}[l] = {spell_value(store.value)};" for store in ends.stores]
        if made or ends.stores:
            yield from _loop(body)

    def _lets(self, phase: Phase) -> Sequence[Let]:
        return needed_lets(self.rows.kernel, phase.values, self.rows.varying, self.known)

    def _read_by(self, block: Phase | _Ends) -> set[str]:
        lets = block.lets
        return {local.name for local in locals_in(*block.values, *(let.value for let in lets))}

    def _bindings(self, locals_read: Iterable[Local]) -> Iterable[str]:
        """The values of this lane that are the same at all points of its row."""
        for name in dict.fromkeys(local.name for local in locals_read):
            if kind := self.by_row.get(name):
                yield f"const {kind} {name} = {name}_lanes[l]{' != 0' if kind == CPP_TYPES[DType.BOOL] else ''};"

    def _element(self, name: str) -> str:
        access = next(access for access in self.rows.accesses if name in access.parts)
        if _is_widened(access):
            return f"{name}_lanes[j * lanes + l] != 0"
        return access.element(name, f"(j * {access.name}_step + l)" if len(access.parts) > 1 else
                              f"j * {access.name}_step + l")  # fmt: skip


def _pointer(access: Access, position: int) -> Iterable[str]:
    if access.extent is not None or access.past_of is not None:
        return
    if access.whole_row:
        yield from access.pointer(position)
        yield f"  const Size {access.name}_step = steps[{position}];"
        if _is_widened(access):
            yield _array(access.name, access.dtype, "most_in_lanes * lanes")
            yield "  for (Size j = 0; j < count; ++j) {"
            element = f"{access.name}_row[j * {access.name}_step + l]"
            yield from _loop([f"{access.name}_lanes[j * lanes + l] = {element};"], "    ")
            yield "  }"
        return
    truths = access.dtype is DType.BOOL and not access.stored
    kind = "uint8_t" if truths else CPP_TYPES[access.dtype]
    name = access.name if access.stored else f"{access.name}_{'given' if truths else 'lanes'}"
    qualifier = "" if access.stored else "const "
    yield f"  {qualifier}{kind}* {name} = static_cast<{qualifier}{kind}*>(row[{position}]);"
    if truths:
        yield _array(access.name, access.dtype)
        yield from _loop([f"{access.name}_lanes[l] = {name}[l];"])


def _loop(body: Iterable[str], indent: str = "  ") -> Iterable[str]:
    yield "#pragma omp simd"
    yield f"{indent}for (Size l = 0; l < lanes; ++l) {{"
    yield from (f"{indent}  {line}" for line in body)
    yield f"{indent}}}"


def _computed(lets: Iterable[Let]) -> tuple[Let, ...]:
    return tuple(let for let in lets if not isinstance(let.value, Load))


def _kept(let: Let) -> str:
    return f"{let.name}_kept_row[j * lanes + l]"


def _kind(dtype: DType) -> str:
    return CPP_TYPES[dtype]


def _array(name: str, dtype: DType, count: str = "lanes") -> str:
    """The array of a value for each lane; truth values in as many bytes as numbers, or vectors would have too many."""
    return f"  {'int32_t' if dtype is DType.BOOL else CPP_TYPES[dtype]} {name}_lanes[{count}];"


def _is_widened(access: Access) -> bool:
    """Whether the truth values of all its rows are copied to such an array first: long before vectors read them."""
    return access.dtype is DType.BOOL and access.whole_row and not access.stored and len(access.parts) == 1
