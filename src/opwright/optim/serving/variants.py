"""Variants: the built kernels of one optimizer, by kind and by what the trace assumed of the numbers."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from opwright.binding.fallbacks import Fallbacks
from opwright.binding.variants.launcher import load_launcher
from opwright.binding.variants.states import Outside, State
from opwright.codegen.cpp.table.emit import ENTRY
from opwright.codegen.header import Origin
from opwright.errors import LibraryUnloadable, NoKernel, NotElementwise, OpwrightError, TracingFailed
from opwright.optim.definition import STEP, Definition
from opwright.optim.kinds import Kind, Rounded, not_yet, specs_of, update_of
from opwright.package import PACKAGE
from opwright.settings import Settings
from opwright.toolchain.build import build
from opwright.toolchain.process.forks import Lock, hold_off_forks
from opwright.toolchain.source import Source
from opwright.tracing.interface.place import function_behind

if TYPE_CHECKING:
    from opwright.operators.updates import Update

MOST_VARIANTS = 8  # of one kind: each is for another way through the branches of the definition


@dataclass(frozen=True, eq=False)
class TableVariant:
    """A kernel for many tensors.

    Attributes:
        run: The C function.
        bytes: How much room it needs for each tensor.
        operands: The tensors of a row of its table.
        numbers: The numbers of a row.
        source: What was built.
    """

    run: Any
    bytes: int
    operands: tuple[str, ...]
    numbers: tuple[str, ...]
    source: Source


@dataclass(frozen=True, eq=False)
class TensorVariant:
    """A kernel, with library operations, for one tensor.

    Attributes:
        run: Takes the arguments in order, numbers as tensors without dimensions; returns the results, and whether they
            are valid. None for each if the sizes are others than it serves.
        arguments: The names of its arguments.
        replaced: For each result but the last, the argument that it replaces.
        source: What was built.
    """

    run: Any
    arguments: tuple[str, ...]
    replaced: tuple[str, ...]
    source: Source


Variant = TableVariant | TensorVariant


@dataclass(eq=False)
class _OfKind:
    found: list[Variant] = field(default_factory=list)
    tries: int = 0
    refusal: OpwrightError | None = None


class Variants:
    """The kernels of one definition in this process.

    Args:
        definition: What they are derived from.
    """

    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self._outside = Outside(definition.function)
        self._found: dict[tuple[State, Kind], _OfKind] = {}
        self._lock = Lock()
        self.built = 0

    @functools.cached_property
    def _settings(self) -> Settings:
        """As they are at the first step: ready optimizers are defined when they are imported."""
        return Settings.from_environment()

    @functools.cached_property
    def fallbacks(self) -> Fallbacks:
        """Warns where the definition serves instead of kernels."""
        usual = lambda _: "its definition, operation by operation"  # noqa: E731
        return Fallbacks(self._definition.name, self._settings, usual)

    def state(self) -> State | None:
        """What the definition reads outside of its arguments now; None if that cannot be compared."""
        try:
            return self._outside.now()
        except OpwrightError as refusal:
            self.fallbacks.tell(refusal)
            return None

    def known(self, state: State, kind: Kind) -> list[Variant]:
        """The variants of a kind so far."""
        return self._found.setdefault((state, kind), _OfKind()).found

    def another(
        self,
        state: State,
        kind: Kind,
        hyper: Mapping[str, Any],
        tensors: Mapping[str, torch.Tensor],
        numbers: Mapping[str, float],
    ) -> Variant:
        """Derive and build one more variant, for these numbers.

        Args:
            state: What the definition reads outside.
            kind: The kind.
            hyper: Hyper-parameters like those of the calls.
            tensors: The operands of a parameter, by name.
            numbers: All numbers of a call, by name.

        Raises:
            OpwrightError: If there can be none.
        """
        with self._lock:
            variants = self._found.setdefault((state, kind), _OfKind())
            if variants.refusal is not None:
                raise variants.refusal.again()
            variants.tries += 1
            try:
                if variants.tries > MOST_VARIANTS:
                    raise NoKernel(
                        f"its branches on numbers have gone {MOST_VARIANTS} ways, each with a kernel of its own",
                        hint="compute with the numbers instead of deciding with `if`",
                    )
                variants.found.append(self._derived(state, kind, hyper, tensors, numbers))
            except OpwrightError as refusal:
                if not isinstance(refusal, TracingFailed):  # which may come of these numbers alone
                    variants.refusal = refusal.again()
                raise
            return variants.found[-1]

    def _derived(
        self,
        state: State,
        kind: Kind,
        hyper: Mapping[str, Any],
        tensors: Mapping[str, torch.Tensor],
        numbers: Mapping[str, float],
    ) -> Variant:
        rounded = not_yet if kind.at_random else None
        update, names = self._update(state, kind, hyper, tensors, numbers, rounded)
        if kind.is_flat:
            with contextlib.suppress(*([] if kind.is_part else [NotElementwise])):
                return self._table(update)
        if kind.is_part:
            raise NotElementwise(
                "parts of the parameter and its states lie in memory in other orders",
                hint="make the parts contiguous before the optimizer is made",
            )
        return self._tensor(update, names)

    def _update(
        self,
        state: State,
        kind: Kind,
        hyper: Mapping[str, Any],
        tensors: Mapping[str, torch.Tensor],
        numbers: Mapping[str, float],
        rounded: Rounded | None,
    ) -> tuple[Update, list[str]]:
        """The update of a kind as a Program, and the names of its arguments."""
        from opwright.operators.updates import derive_update  # imports sympy, which PyTorch's optimizers do not need

        update, names, results = update_of(self._definition, kind, hyper, rounded)
        specs = specs_of(names, tensors, numbers)
        with hold_off_forks():
            derived = state.tracing(update, lambda reference: derive_update(reference, specs, results, self._name))
        return derived, names

    @property
    def _name(self) -> str:
        return self._definition.name.lower()

    @property
    def _origin(self) -> Origin | None:
        function = function_behind(self._definition.function)
        if function is None or function.__code__.co_filename.startswith(str(PACKAGE)):
            return None
        return Origin(function.__qualname__, function.__code__.co_filename.rpartition("/")[2])

    def text(
        self,
        kind: Kind,
        hyper: Mapping[str, Any],
        tensors: Mapping[str, torch.Tensor],
        numbers: Mapping[str, float],
    ) -> str:
        """The source of a kernel, without building it."""
        from opwright.operators.updates import table_source, tensor_source  # as above

        update, _ = self._update(self._outside.now(), kind, hyper, tensors, numbers, None)
        with contextlib.suppress(NotElementwise):
            return table_source(update, STEP, self._origin).source.text
        return tensor_source(update, self._origin).text

    def _table(self, update: Update) -> TableVariant:
        from opwright.operators.updates import table_source  # as above

        emitted = table_source(update, STEP, self._origin)
        source = Source(emitted.source.name, emitted.source.text)
        self.built += 1
        (path,) = build([source], self._settings)
        with hold_off_forks():
            try:
                library = ctypes.CDLL(str(path))
            except OSError as error:
                raise LibraryUnloadable(f"the kernels that were built cannot be loaded: {error}") from error
        run, size = library[ENTRY], library[f"{ENTRY}_bytes"]
        run.argtypes, run.restype = [ctypes.c_void_p], ctypes.c_int64
        size.argtypes, size.restype = [], ctypes.c_int64
        return TableVariant(run, size(), emitted.operands, emitted.numbers, source)

    def _tensor(self, update: Update, names: list[str]) -> TensorVariant:
        from opwright.operators.updates import tensor_source  # as above

        source = tensor_source(update, self._origin)
        self.built += 1
        (path,) = build([source], self._settings)
        return TensorVariant(load_launcher(path, source.name), tuple(names), update.replaced, source)
