"""merged: kernels over the elements of tensors of one shape → one kernel, which computes again what others had stored.

Before: kernel over i0 < s0:  let v = v[i0]; let u = v * v; reduce n = sum(u); u_1[i0] = u; n_1[] = n
        kernel over i0 < s0:  let p = p[i0]; let u = u_1[i0]; let n = n_1[]; p_1[i0] = p - u / n
After:  kernel over i0 < s0:  let v = v[i0]; let u = v * v; reduce n = sum(u); let p = p[i0]; p_1[i0] = p - u / n

Its rows are whole tensors: what it reduces is the same for all elements. Kernels of tensors of one element have no
axes; they get one, so that what they compute is that of an element, and not a number known before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from opwright.errors import NotElementwise
from opwright.ir.contents import needed
from opwright.ir.expressions.expression import Expression, Load, Local, rewrite_children
from opwright.ir.expressions.integer import ONE, ZERO, Integer, symbol, symbols_of
from opwright.ir.names.fresh import fresh
from opwright.ir.program import Axis, Binding, Buffer, Gather, Kernel, Let, Number, Program, Reduce, Store

Place = tuple[Integer, ...]


def merged(program: Program) -> Program:
    """See the top.

    Args:
        program: After the passes.

    Raises:
        NotElementwise: If it does anything else than that.
    """
    kernels = [step for step in program.steps if isinstance(step, Kernel)]
    numbers = [step for step in program.steps if isinstance(step, Number)]
    if program.cases or len(kernels) + len(numbers) != len(program.steps):
        raise refusal(f"it runs {len(program.steps)} steps")
    shapes = _shapes(program, kernels)
    over_elements = [kernel for kernel in kernels if kernel.axes or _places(kernel, shapes)]
    if not over_elements:
        raise refusal("it computes no elements of tensors")
    if len({bool(kernel.axes) for kernel in over_elements}) > 1:
        raise refusal("it reads one element to compute another")
    axes, place = _point(over_elements, shapes)
    merging = _Merging(program, {n.target.name for n in numbers}, place)
    for kernel in kernels:
        merging.add(kernel, shapes)
    lets = needed(merging.lets, [store.value for store in merging.stores])
    made = {target.name: target for kernel in kernels for target in kernel.targets}
    targets = tuple(made[store.buffer] for store in merging.stores)
    name = over_elements[-1].name
    kernel = Kernel(name, targets, axes, tuple(lets), tuple(merging.stores), row_axes=len(axes))
    return replace(program, steps=(*numbers, kernel))


def merged_numbers(program: Program) -> Kernel:
    """The same for kernels of numbers alone, which have no axes: one that computes all outputs.

    Args:
        program: After the passes; its kernels have no axes.

    Raises:
        NotElementwise: If it does anything else.
    """
    sizes = {step.target.name for step in program.steps if isinstance(step, Number)}
    merging, targets = _Merging(program, sizes, ()), dict[str, Buffer]()
    for step in program.steps:
        if isinstance(step, Kernel):
            merging.add(step, {})
            targets |= {target.name: target for target in step.targets}
    lets = needed(merging.lets, [store.value for store in merging.stores])
    made = tuple(targets[store.buffer] for store in merging.stores)
    return Kernel(program.name, made, (), tuple(lets), tuple(merging.stores))


def refusal(fact: str) -> NotElementwise:
    """A Program that no table of tensors serves."""
    return NotElementwise(f"{fact}, so it is no update element by element")


def _shapes(program: Program, kernels: list[Kernel]) -> dict[str, tuple[Integer, ...]]:
    buffers: list[Buffer] = [*program.inputs, *(target for kernel in kernels for target in kernel.targets)]
    shapes = {buffer.name: buffer.shape for buffer in buffers}
    if len({len(shape) for shape in shapes.values() if shape}) != 1:
        raise refusal("its tensors have other shapes than the parameter")
    return shapes


def _point(kernels: Sequence[Kernel], shapes: Mapping[str, tuple[Integer, ...]]) -> tuple[tuple[Axis, ...], Place]:
    """The axes of all kernels, and the place at which they read and write."""
    first, *_ = [_place(kernel, shapes) for kernel in kernels]
    if kernels[0].axes:
        return kernels[0].axes, first
    name = fresh("i0", {let.name for kernel in kernels for let in kernel.lets})
    return (Axis(name, ONE),), (symbol(name), *first[1:])


def _places(kernel: Kernel, shapes: Mapping[str, tuple[Integer, ...]]) -> set[Place]:
    """Where a kernel reads and writes tensors that have dimensions."""
    loads = [let.value for let in kernel.lets if isinstance(let.value, Load)]
    places = {load.indices for load in loads if shapes.get(load.buffer)}
    return places | {store.indices for store in kernel.stores if store.indices}


def _place(kernel: Kernel, shapes: Mapping[str, tuple[Integer, ...]]) -> Place:
    """The one place at which a kernel reads and writes tensors: every axis, in some order."""
    if any(isinstance(let, Gather) for let in kernel.lets) or any(store.reduction for store in kernel.stores):
        raise refusal("it reduces along some dimensions, or gathers")
    if kernel.row_axes not in (0, len(kernel.axes)) and any(isinstance(let, Reduce) for let in kernel.lets):
        raise refusal("it reduces along some dimensions")
    places = _places(kernel, shapes)
    if len(places) != 1:
        raise refusal("it reads one element to compute another")
    (place,) = places
    axes = {axis.name for axis in kernel.axes}
    used = sorted(name for index in place for name in symbols_of(index))
    if used != sorted(axes) or any(str(index) not in axes and index != ZERO for index in place):
        raise refusal("it reads one element to compute another")
    return place


class _Merging:
    """The kernel so far.

    Args:
        program: What is merged.
        sizes: Buffers that hold sizes.
        place: Where all tensors are read and written.
    """

    def __init__(self, program: Program, sizes: set[str], place: Place) -> None:
        self.lets: list[Binding] = []
        self.stores: list[Store] = []
        self._outputs = set(program.outputs)
        self._dtypes = {buffer.name: buffer.dtype for buffer in program.inputs}
        self._given = {*self._dtypes, *sizes}
        self._place = place
        self._known: dict[str, Local] = {}  # by buffer
        self._taken: set[str] = {str(index) for index in place}

    def add(self, kernel: Kernel, shapes: Mapping[str, tuple[Integer, ...]]) -> None:
        """Add a kernel, behind those that it reads from."""
        own: dict[str, Local] = {}

        def rewritten(value: Expression) -> Expression:
            match value:
                case Local(name):
                    return own[name]
                case Load(buffer):
                    return self._loaded(value, bool(shapes.get(buffer)))
            return rewrite_children(value, rewritten)

        for let in kernel.lets:
            assert not isinstance(let, Gather)
            value = rewritten(let.value)
            same = isinstance(let, Let) and isinstance(value, Local)
            own[let.name] = value if same else self._bound(replace(let, value=value))  # type: ignore[assignment]
        self._dtypes |= {target.name: target.dtype for target in kernel.targets}
        for store in kernel.stores:
            self._store(store, rewritten(store.value))

    def _store(self, store: Store, value: Expression) -> None:
        if value.dtype is not self._dtypes[store.buffer]:
            raise refusal(f"it converts '{store.buffer}' where it is stored")
        local = value if isinstance(value, Local) else self._bound(Let(store.buffer, value))
        self._known[store.buffer] = local
        if store.buffer in self._outputs:
            self.stores.append(Store(store.buffer, self._place if store.indices else (), local))

    def _loaded(self, load: Load, is_tensor: bool) -> Local:
        if load.buffer not in self._known:
            assert load.buffer in self._given
            found = Load(load.buffer, self._place if is_tensor else (), load.dtype)
            self._known[load.buffer] = self._bound(Let(load.buffer, found))
        return self._known[load.buffer]

    def _bound(self, let: Let | Reduce) -> Local:
        name = fresh(let.name, self._taken)
        self._taken.add(name)
        self.lets.append(replace(let, name=name))
        return Local(name, let.value.dtype)
