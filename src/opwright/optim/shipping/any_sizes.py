"""Whether a kernel that was derived for parameters of some sizes serves those of all sizes.

A table's kernel goes through memory element by element. It is right for another shape if the definition would do the
same there: if it asks no tensor for its shape, and all that it runs are operations on elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from opwright.binding.variants.states import State
from opwright.errors import NotElementwise, OpwrightError
from opwright.optim.definition import MASTER, STEP, Definition
from opwright.optim.kinds import Kind, computes_in, gathered
from opwright.optim.serving.deriving import Derived, derive
from opwright.optim.serving.kernels import Variant, Wanted, of_any_sizes
from opwright.optim.serving.variants import Variants

_aten = torch.ops.aten
# Beside operations that PyTorch marks as pointwise: copies, and tensors like others.
_ON_ELEMENTS = frozenset(
    {_aten.clone, _aten._to_copy, _aten.detach, _aten.alias, _aten.lift_fresh, _aten.zeros_like, _aten.ones_like,
     _aten.full_like, _aten.empty_like, _aten.scalar_tensor}
)  # fmt: skip
_QUERIES = frozenset({torch.Tensor.dtype.__get__, torch.Tensor.device.__get__, torch.Tensor.is_floating_point})  # type: ignore[attr-defined]


class ProbedVariants(Variants):
    """Kernels, each derived once for all sizes where it serves these; none comes from another process."""

    def __init__(self, definition: Definition) -> None:
        super().__init__(definition)
        self._tables: list[tuple[State, Kind, Wanted]] = []

    def _recorded(self, state: Any, kind: Kind) -> list[Variant]:
        return []

    def known(self, state: Any, kind: Kind, device: torch.device) -> list[Variant]:
        """The variants of a kind, also those of any sizes."""
        return [*self._of_kind(state, kind).found, *self._of_kind(state, of_any_sizes(kind)).found]

    def another(self, state: Any, wanted: Wanted) -> Variant:
        """Derive one more."""
        variant = super().another(state, wanted)
        if variant.one_by_one:
            return variant
        kind = wanted.kind
        if serves_any_sizes(self._definition, wanted):
            kind = of_any_sizes(kind)
            self._of_kind(state, wanted.kind).found.remove(variant)
            self._of_kind(state, kind).found.append(variant)
        self._tables.append((state, kind, wanted))
        return variant

    def for_gpus(self) -> Iterator[tuple[Kind, Derived]]:
        """The same kernels of tables in CUDA, for tensors of the processor; without those that it would wait for."""
        for state, kind, wanted in self._tables:
            there = replace(wanted, kind=replace(wanted.kind, distant_factor=kind.scaled))
            with suppress(NotElementwise):
                derived = derive(self._definition, state, there, for_gpus=True)
                if not derived.one_by_one:
                    yield replace(kind, distant_factor=kind.scaled), derived


def serves_any_sizes(definition: Definition, wanted: Wanted) -> bool:
    """Whether a definition does the same for all sizes.

    Args:
        definition: The update.
        wanted: What a kernel was derived for, which is for a table.
    """
    if 1 in wanted.tensors["param"].shape:
        return False  # along one element, some operations do nothing
    wide = computes_in(wanted.kind)

    def like(name: str) -> torch.Tensor | None:
        tensor = wanted.tensors.get(name)
        if tensor is None:
            return None
        dtype = tensor.dtype if not tensor.dim() else wide
        return torch.empty(tensor.shape, dtype=dtype, device="meta")

    given = [like(MASTER if wanted.kind.master else "param"), like("grad"), *map(like, definition.states)]
    numbers = wanted.numbers
    return _only_elements(lambda: definition.function(*given, numbers[STEP], **gathered(wanted.hyper, numbers)))


def _only_elements(run: Callable[[], Any]) -> bool:
    watch = _Watch()
    try:
        with torch.no_grad(), watch.watching():
            run()
    except (OpwrightError, RuntimeError, TypeError, NotImplementedError):  # on meta tensors
        return False
    return watch.only_elements


class _Watch:
    """What a function does with tensors."""

    def __init__(self) -> None:
        self.only_elements = True
        self.dispatched = 0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look at all that runs."""
        with _Functions(self), _Operations(self):
            yield


class _Operations(TorchDispatchMode):
    def __init__(self, watch: _Watch) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's
        self.watch = watch

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        self.watch.dispatched += 1
        if torch.Tag.pointwise not in func.tags and func.overloadpacket not in _ON_ELEMENTS:
            self.watch.only_elements = False
        return func(*args, **(kwargs or {}))


class _Functions(TorchFunctionMode):
    """Functions that run no operation ask a tensor for something: only what is the same for all sizes may be asked."""

    def __init__(self, watch: _Watch) -> None:
        super().__init__()
        self.watch = watch

    def __torch_function__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        before = self.watch.dispatched
        made = func(*args, **(kwargs or {}))
        returned = made is not None and any(made is arg for arg in args)  # such as a conversion to its own dtype
        if self.watch.dispatched == before and not returned and func not in _QUERIES:
            self.watch.only_elements = False
        return made
