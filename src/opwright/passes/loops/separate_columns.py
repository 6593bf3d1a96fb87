"""Split reductions of columns from reductions of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from opwright.ir.contents import locals_in, needed
from opwright.ir.expressions.expression import Expression, Load, Local
from opwright.ir.expressions.integer import symbol
from opwright.ir.names.fresh import fresh
from opwright.ir.program import Binding, Buffer, Kernel, Let, Program, Reduce, Step, Store, buffers_of
from opwright.ir.rows import outer_axes, varying_locals


def separate_columns(program: Program) -> Program:
    """Reduce rows in one kernel, and columns in the next, which reads the results of the first.

    Before: kernel y over i0, row i1:  reduce s = sum of x;  y[i0, i1] = x - s;  z[i1] = sum of x·s
    After:  kernel y over i0, row i1:  reduce s = sum of x;  y[i0, i1] = x - s;  s_of_rows[i0] = s
            kernel z over i0, i1:      let s = s_of_rows[i0];  z[i1] = sum of x·s

    For backends where each thread has a row, so that no thread sees a column.
    """
    taken = {step.name for step in program.steps if isinstance(step, Kernel)} | set(buffers_of(program))
    steps: list[Step] = []
    for step in program.steps:
        mixed = isinstance(step, Kernel) and step.row_axes and any(store.reduction for store in step.stores)
        steps += _Separation(step, taken).kernels() if mixed and isinstance(step, Kernel) else [step]
    return replace(program, steps=tuple(steps))


@dataclass
class _Separation:
    """Splits one kernel; `taken` are names in use."""

    kernel: Kernel
    taken: set[str]

    def kernels(self) -> list[Kernel]:
        columns = [store for store in self.kernel.stores if store.reduction]
        carried = self._carried([store.value for store in columns])
        buffers = {name: self._buffer(name, local) for name, local in carried.items()}
        at = tuple(symbol(axis.name) for axis in outer_axes(self.kernel))
        kept = [store for store in self.kernel.stores if not store.reduction]
        kept += [Store(buffers[name].name, at, local) for name, local in carried.items()]
        loads = {name: Let(name, Load(buffers[name].name, at, local.dtype)) for name, local in carried.items()}
        lets = needed(self.kernel.lets, [store.value for store in columns], carried)
        return [*self._rows(kept, list(buffers.values())), self._columns(columns, [*loads.values(), *lets])]

    def _rows(self, stores: Sequence[Store], carried: Sequence[Buffer]) -> list[Kernel]:
        if not stores:
            return []
        written = {store.buffer for store in stores}
        lets = needed(self.kernel.lets, [store.value for store in stores])
        return [
            replace(
                self.kernel,
                targets=(*(target for target in self.kernel.targets if target.name in written), *carried),
                lets=tuple(lets),
                stores=tuple(stores),
                row_axes=self.kernel.row_axes if any(isinstance(let, Reduce) for let in lets) else 0,
            )
        ]

    def _columns(self, stores: Sequence[Store], lets: Sequence[Binding]) -> Kernel:
        written = {store.buffer for store in stores}
        targets = tuple(target for target in self.kernel.targets if target.name in written)
        name = self._fresh(f"{self.kernel.name}_columns")
        return Kernel(name, targets, self.kernel.axes, tuple(lets), tuple(stores))

    def _carried(self, values: Sequence[Expression]) -> dict[str, Local]:
        """What follows from reductions of rows and is the same for a whole row: found from the values that need it."""
        lets = {let.name: let for let in self.kernel.lets}
        varying, late = varying_locals(self.kernel), self._late()
        found: dict[str, Local] = {}
        waiting, seen = [*values], set[str]()
        while waiting:
            for local in locals_in(waiting.pop()):
                if local.name in seen:
                    continue
                seen.add(local.name)
                if local.name in late and local.name not in varying:
                    found[local.name] = local
                else:
                    waiting.append(lets[local.name].value)
        return {name: found[name] for name in lets if name in found}

    def _late(self) -> set[str]:
        late: set[str] = set()
        for let in self.kernel.lets:
            if isinstance(let, Reduce) or any(local.name in late for local in locals_in(let.value)):
                late.add(let.name)
        return late

    def _buffer(self, name: str, local: Local) -> Buffer:
        shape = tuple(axis.extent for axis in outer_axes(self.kernel))
        return Buffer(self._fresh(f"{name}_of_rows"), local.dtype, shape)

    def _fresh(self, name: str) -> str:
        name = fresh(name, self.taken, {let.name for let in self.kernel.lets})
        self.taken.add(name)
        return name
