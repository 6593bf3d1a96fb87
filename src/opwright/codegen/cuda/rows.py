"""A kernel that reduces its rows, as CUDA: passes over a row that a team of threads keeps in registers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace

from opwright.codegen.cpp.expression import CPP_TYPES, is_transcendental, spell_value
from opwright.codegen.cpp.loops.access import Access, accesses_of, store_names
from opwright.codegen.cpp.loops.reductions import reductions_struct
from opwright.codegen.cpp.loops.rows import kept_between_passes, reducing_step, spellings_of
from opwright.codegen.cuda.arguments import Arguments, Geometry, padded
from opwright.codegen.cuda.functions import CUDA, DEVICE
from opwright.codegen.cuda.packs import (
    bind,
    element,
    indented,
    loads,
    loop_over_pack,
    member,
    numbers,
    read_into_members,
    reading,
    registers,
    stores,
)
from opwright.codegen.cuda.versions import Version, entry_points
from opwright.ir.expressions.expression import Expression, Load
from opwright.ir.phases import Phase, needed_lets, schedule
from opwright.ir.program import Kernel, Let, Reduce, Store
from opwright.ir.rows import outer_axes, row_axes, varying_locals

_MOST_THREADS, _THREADS_OF_PIECES = 1024, 256
_READ_PIECES = (
    "Piece these_pieces[Held > 0 ? Held : 1];",
    "read_pieces<Width, Held>(given, this_row, these_pieces);",
)
_REGISTERS_FOR_ROWS, _MOST_HELD = 32, 8  # of the 64 registers that each of 1,024 threads has


def rows_arguments(kernel: Kernel, name: str, iotas: Set[str], sizes: Set[str]) -> Arguments:
    """The arguments of such a kernel."""
    accesses = accesses_of(kernel, iotas, in_parts=False)
    return Arguments(name, Geometry(padded(outer_axes(kernel)), row_axes(kernel)), accesses, sizes)


class RowsEmitter:
    """Writes the device code of one kernel with rows, and says how it is launched."""

    def __init__(self, kernel: Kernel, arguments: Arguments) -> None:
        self.kernel = kernel
        self.arguments = arguments
        self.schedule = schedule(kernel)
        self.varying = varying_locals(kernel)
        self.kept = kept_between_passes(kernel, self.schedule, self.varying, is_transcendental)
        self.names = {id(store): name for store, name in zip(kernel.stores, store_names(kernel), strict=True)}
        self.at = f"const {arguments.geometry.points}& at"
        self.row = f"const Row<Index, {len(arguments.geometry.outer)}, {len(arguments.geometry.inner)}>& this_row"
        self.given = f"const {arguments.type}& given"
        self.moving = {access.name: access for access in loads(arguments) if access.whole_row}
        first = {let.name for let in self.schedule.phases[0].lets}
        self.held = [a for name, a in self.moving.items() if name in first and not self._is_same_for_rows(a)]

    @property
    def launch(self) -> str:
        """The function of include/opwright/cuda/launches.h that launches it."""
        width, held = self.arguments.width, f"{self._packs_held(1)}, {self._packs_held(self.arguments.width)}"
        if not self.schedule.is_single:
            return f"launch_rows<{width}, {held}>"
        return f"launch_reductions<{width}, {held}, {8 * sum(isinstance(let, Reduce) for let in self.kernel.lets)}>"

    @property
    def suffixes(self) -> list[str]:
        """The suffixes of its kernels' names, in the order of the launcher's table."""
        found = [version.suffix for version in self._versions()]
        if self.schedule.is_single:
            found += [f"{kind}{version.suffix}" for kind in ("_pieces", "_finish") for version in self._piecewise()]
        return found

    def _versions(self) -> tuple[Version, ...]:
        """Any row, with indices of 32 and of 64 bits; rows that are kept in registers; the same for packs."""
        any_row, *held = self._versions_of_width("", 1)
        packed = self._versions_of_width("_packed", self.arguments.width) if self.arguments.width > 1 else ()
        return (any_row, Version("_wide", _MOST_THREADS, "int64_t", 1, 0), *held, *packed)

    def _versions_of_width(self, suffix: str, width: int) -> tuple[Version, Version]:
        return (
            Version(suffix, _MOST_THREADS, "int32_t", width, 0),
            Version(f"_held{suffix}", _MOST_THREADS, "int32_t", width, self._packs_held(width)),
        )

    def _piecewise(self) -> list[Version]:
        return [replace(version, threads=_THREADS_OF_PIECES) for version in self._versions() if version.held == 0]

    def _packs_held(self, width: int) -> int:
        """How many packs of a row fit the registers of a thread."""
        loaded = sum(registers(access, width) for access in self.held)
        kept = sum(max(let.value.dtype.bytes // 4, 1) * width for let in self.kept)
        return min(max(_REGISTERS_FOR_ROWS // max(loaded + kept, 1), 1), _MOST_HELD)

    def _is_same_for_rows(self, access: Access) -> bool:
        """Whether all rows read the same, such as a weight: that stays in the cache, and takes no registers."""
        outer = access.strides[: len(access.strides) - self.kernel.row_axes]
        return bool(outer) and all(stride == "0" for stride in outer)

    def functions(self, formulas: Sequence[str]) -> str:
        """All device code: a struct with the functions for a row, and the kernels."""
        name, single = self.arguments.name, self.schedule.is_single
        body = self._one_pass() if single else self._passes()
        lines = [
            *(f"// {formula}" for formula in formulas),
            "template <class Index, int Width, int Held>",
            f"struct {name}_rows {{",
            *indented(self._piece()),
            "",
            *indented(body),
            "};",
        ]
        whole = "reduce_rows" if single else "for_each_row"
        parts = ["\n".join(lines), self._kernels(whole, self._versions())]
        if single:
            parts += [self._kernels("reduce_pieces", self._piecewise(), "_pieces")]
            parts += [self._kernels("finish_rows", self._piecewise(), "_finish")]
        return "\n\n".join(parts)

    def _kernels(self, call: str, versions: Sequence[Version], kind: str = "") -> str:
        named = [replace(version, suffix=f"{kind}{version.suffix}") for version in versions]
        return entry_points(self.arguments, named, f"{call}<{self.arguments.name}_rows, {{}}>")

    def _piece(self) -> list[str]:
        kept = [f"Pack<{CPP_TYPES[let.value.dtype]}, Width> {let.name}_pack;" for let in self.kept]
        return [
            "// One pack of a row, in a thread.",
            "struct Piece {",
            *indented([*map(member, self.held), *kept]),
            *([""] if self.held or kept else []),
            f"  __device__ void read({self.given}, {self.at}) {{",
            *indented(read_into_members(self.held), 4),
            "  }",
            "};",
        ]

    def _passes(self) -> list[str]:
        lines = []
        for number, phase in enumerate(self.schedule.phases):
            if phase.reductions:
                lines += [*reductions_struct(f"Reductions_{number}", spellings_of(phase, CUDA), DEVICE), ""]
        lines += [f"static __device__ void run({self.given}, {self.row}) {{"]
        fixed = {let.name for let in self.kernel.lets} - self.varying
        lines += indented([*self._fixed_reads(fixed), *_READ_PIECES, *map(bind, _computed(self.schedule.before))])
        known: set[str] = set()
        for number, phase in enumerate(self.schedule.phases):
            lines += indented(self._pass(phase, f"reductions_{number}", known))
            lines += indented(self._after(phase, f"reductions_{number}"))
            known |= {let.name for let in phase.lets if let in self.kept}
        return [*lines, *indented(self._written_once()), "}"]

    def _one_pass(self) -> list[str]:
        (phase,) = self.schedule.phases
        inside = [*(let.value for let in phase.lets), *phase.values]
        outside = [store.value for store in self.schedule.once]
        lines = [*reductions_struct("Reductions", spellings_of(phase, CUDA), DEVICE), ""]
        lines += [f"static __device__ void reduce({self.given}, {self.row}, Reductions& reductions) {{"]
        lines += indented(self._bound_for(inside, meanwhile=_READ_PIECES))
        lines += [*indented(self._pass(phase, "reductions", set(), own=False)), "}", ""]
        lines += [f"static __device__ void finish({self.given}, {self.row}, const Reductions& reductions) {{"]
        before = self._bound_for(outside, without={let.name for let in phase.after})
        lines += indented([*before, *self._after(phase, "reductions", reduce=False)])
        return [*lines, *indented(self._written_once()), "}"]

    def _pass(self, phase: Phase, reductions: str, known: Set[str], *, own: bool = True) -> list[str]:
        """One pass over the row; `known` are values that an earlier pass keeps."""
        spellings = spellings_of(phase, CUDA)
        lets = needed_lets(self.kernel, phase.values, self.varying)
        written = stores(self.arguments, [self.names[id(store)] for store in phase.stores])
        late = [
            self.moving[let.name] for let in lets if let.name in self.moving and self.moving[let.name] not in self.held
        ]
        parts = {reduction.name: part for reduction in phase.reductions if (part := spellings[reduction.name].part)}
        body = [line for let in lets for line in self._let(let, known)]
        for reduction in phase.reductions:
            into = f"{reduction.name}_part" if reduction.name in parts else f"{reductions}.{reduction.name}"
            body += reducing_step(spellings[reduction.name], into, spell_value(reduction.value, CUDA), reduction.name)
        body += [f"{self.names[id(s)]}_pack[j] = {spell_value(s.value, CUDA)};" for s in phase.stores]
        visit = [
            *(f"const {member(access)[:-1]} = {reading(access)};" for access in late),
            *(f"{part} {name}_part = 0;" for name, part in parts.items()),
            *map(member, written),
            *loop_over_pack(body),
            *(f"{reductions}.{name} += {name}_part;" for name in parts),
            *(f"store(given.{access.name}, at, {access.name}_pack);" for access in written),
        ]
        start = (
            [f"{reductions[0].upper()}{reductions[1:]} {reductions};", f"{reductions}.start();"]
            if phase.reductions and own
            else []
        )
        # With `auto`, NVRTC 13.0 takes the function for one of the host.
        opening = (
            "for_each_piece<Width, Held>(given, this_row, these_pieces, "
            "[&](Piece& this_piece, const decltype(this_row.at)& at) {"
        )
        return [*start, opening, *indented(visit), "});"]

    def _let(self, let: Let, known: Set[str]) -> Iterable[str]:
        if isinstance(let.value, Load):
            is_held = self.moving[let.name] in self.held
            yield element(let, "this_piece." if is_held else "")
        elif let.name in known:
            kind, value = CPP_TYPES[let.value.dtype], spell_value(let.value, CUDA)
            yield f"const {kind} {let.name} = Held > 0 ? this_piece.{let.name}_pack[j] : {value};"
        else:
            yield bind(let)
            if let in self.kept:
                yield f"this_piece.{let.name}_pack[j] = {let.name};"

    def _after(self, phase: Phase, reductions: str, *, reduce: bool = True) -> Iterable[str]:
        """The reductions of a row, and what is computed from them once."""
        if phase.reductions and reduce:
            yield f"reduce_threads({reductions});"
        spellings = spellings_of(phase, CUDA)
        for reduction in phase.reductions:
            end = spellings[reduction.name].end.format(f"{reductions}.{reduction.name}")
            yield f"const {CPP_TYPES[reduction.value.dtype]} {reduction.name} = {end};"
        yield from map(bind, _computed(phase.after))

    def _written_once(self) -> list[str]:
        once = self.schedule.once
        if not once:
            return []
        return ["if (this_row.is_first_thread) {", *indented(self._once(once)), "}"]

    def _once(self, once: Sequence[Store]) -> Iterable[str]:
        for store in once:
            kind = CPP_TYPES[store.value.dtype]
            value = spell_value(store.value, CUDA)
            yield f"store_one<{kind}>(given.{self.names[id(store)]}, this_row.at, {value});"

    def _bound_for(
        self, values: Sequence[Expression], without: Set[str] = frozenset(), meanwhile: Sequence[str] = ()
    ) -> list[str]:
        """The uniform values that these depend on, without those that depend on reductions.

        `meanwhile` are statements for the time until what is read for them has come.
        """
        fixed = {let.name for let in self.kernel.lets if isinstance(let, Let)} - self.varying
        lets = [let for let in needed_lets(self.kernel, values, fixed) if let.name not in without]
        return [*self._fixed_reads({let.name for let in lets}), *meanwhile, *map(bind, _computed(lets))]

    def _fixed_reads(self, names: Set[str]) -> list[str]:
        found = [a for a in loads(self.arguments) if not a.whole_row and a.name in names]
        reads = [f"const {member(a)[:-1]} = {reading(a).replace(', at)', ', this_row.at)')};" for a in found]
        return [*numbers(self.arguments, names), *reads]


def _computed(lets: Iterable[Let | Reduce]) -> list[Let]:
    return [let for let in lets if isinstance(let, Let) and not isinstance(let.value, Load)]
