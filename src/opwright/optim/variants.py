"""Variants: the built kernels of one optimizer, by kind and by what the trace assumed of the numbers."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from opwright.binding.fallbacks import Fallbacks
from opwright.binding.variants.launcher import load_launcher
from opwright.binding.variants.states import Outside, State
from opwright.codegen.cpp.table.emit import ENTRY
from opwright.codegen.header import Origin
from opwright.errors import LibraryUnloadable, NoKernel, OpwrightError
from opwright.operators.updates import Update, derive_update, table_source, tensor_source
from opwright.optim.definition import STEP, Definition
from opwright.optim.kinds import Kind, specs_of, update_of
from opwright.package import PACKAGE
from opwright.settings import Settings
from opwright.toolchain.build import build
from opwright.toolchain.process.forks import Lock, hold_off_forks
from opwright.toolchain.source import Source
from opwright.tracing.interface.place import function_behind

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
    refusal: OpwrightError | None = None


class Variants:
    """The kernels of one definition in this process.

    Args:
        definition: What they are derived from.
    """

    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self._settings = Settings.from_environment()
        self._outside = Outside(definition.function)
        self._found: dict[tuple[State, Kind], _OfKind] = {}
        self._lock = Lock()
        usual = lambda _: "its definition, operation by operation"  # noqa: E731
        self.fallbacks = Fallbacks(definition.name, self._settings, usual)
        self.built = 0

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
    ) -> Variant | None:
        """Derive and build one more variant, for these numbers; None if there can be none, after a warning.

        Args:
            state: What the definition reads outside.
            kind: The kind.
            hyper: Hyper-parameters like those of the calls.
            tensors: The operands of a parameter, by name.
            numbers: All numbers of a call, by name.
        """
        with self._lock:
            variants = self._found.setdefault((state, kind), _OfKind())
            if variants.refusal is None and len(variants.found) >= MOST_VARIANTS:
                variants.refusal = NoKernel(
                    f"its branches on numbers have gone {MOST_VARIANTS} ways, each with a kernel of its own",
                    hint="compute with the numbers instead of deciding with `if`",
                )
            if variants.refusal is None:
                try:
                    variants.found.append(self._derived(state, kind, hyper, tensors, numbers))
                    return variants.found[-1]
                except OpwrightError as refusal:
                    variants.refusal = refusal.again()
            self.fallbacks.tell(variants.refusal)
            return None

    def _derived(
        self,
        state: State,
        kind: Kind,
        hyper: Mapping[str, Any],
        tensors: Mapping[str, torch.Tensor],
        numbers: Mapping[str, float],
    ) -> Variant:
        update, names, results = update_of(self._definition, kind, hyper)
        specs = specs_of(names, tensors, numbers)
        with hold_off_forks():
            derived = state.tracing(update, lambda reference: derive_update(reference, specs, results, self._name))
        self.built += 1
        if kind.is_flat:
            try:
                return self._table(derived, kind.at_random)
            except NoKernel:
                if kind.at_random:
                    raise
        elif kind.at_random:
            raise NoKernel("only updates element by element of tensors in one dense order round at random in kernels")
        return self._tensor(derived, names)

    @property
    def _name(self) -> str:
        return self._definition.name.lower()

    @property
    def _origin(self) -> Origin | None:
        function = function_behind(self._definition.function)
        if function is None or function.__code__.co_filename.startswith(str(PACKAGE)):
            return None
        return Origin(function.__qualname__, function.__code__.co_filename.rpartition("/")[2])

    def _table(self, update: Update, at_random: bool) -> TableVariant:
        emitted = table_source(update, STEP, self._origin, at_random=at_random)
        source = Source(emitted.source.name, emitted.source.text)
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
        source = tensor_source(update, self._origin)
        (path,) = build([source], self._settings)
        return TensorVariant(load_launcher(path, source.name), tuple(names), update.replaced, source)
