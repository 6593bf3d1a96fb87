"""Variants: the built kernels of one optimizer, by kind and by what the trace assumed of the numbers."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from opwright.binding.fallbacks import Fallbacks
from opwright.binding.variants.backends import examine
from opwright.binding.variants.launcher import Launcher, load_launcher
from opwright.binding.variants.states import Outside, State
from opwright.codegen.cuda.table import LAUNCH
from opwright.codegen.header import Origin
from opwright.errors import NoKernel, NotElementwise, OpwrightError, TracingFailed
from opwright.optim.definition import STEP, Definition
from opwright.optim.kinds import Kind, Rounded, not_yet, update_of
from opwright.optim.serving.kernels import TableVariant, TensorVariant, Variant, Wanted, Watched
from opwright.optim.serving.watching import watching
from opwright.package import PACKAGE
from opwright.settings import Settings
from opwright.toolchain.build import build
from opwright.toolchain.process.forks import Lock, hold_off_forks
from opwright.toolchain.source import Source
from opwright.tracing.interface.place import function_behind
from opwright.tracing.interface.specs import ArgumentSpec, NumberSpec, TensorSpec

if TYPE_CHECKING:
    from opwright.operators.updates import Update

MOST_VARIANTS = 8  # of one kind: each is for another way through the branches of the definition


@dataclass(eq=False)
class _OfKind:
    found: list[Variant] = field(default_factory=list)
    tries: int = 0
    refusal: OpwrightError | None = None


class Variants:
    """The kernels of one definition in this process.

    Args:
        definition: What they are derived from.
        settings: How they are built; None for what the environment says at the first step.
    """

    def __init__(self, definition: Definition, settings: Settings | None = None) -> None:
        self._definition = definition
        self._given_settings = settings
        self._outside = Outside(definition.function)
        self._found: dict[tuple[State, Kind], _OfKind] = {}
        self._lock = Lock()
        self.built = 0

    @functools.cached_property
    def _settings(self) -> Settings:
        """As they are at the first step: ready optimizers are defined when they are imported."""
        return self._given_settings or Settings.from_environment()

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

    def all(self) -> Iterator[tuple[Kind, Sequence[Variant]]]:
        """Every kind so far, with its variants."""
        for (_, kind), of_kind in self._found.items():
            yield kind, of_kind.found

    def another(self, state: State, wanted: Wanted) -> Variant:
        """Derive and build one more variant.

        Args:
            state: What the definition reads outside.
            wanted: What it is for.

        Raises:
            OpwrightError: If there can be none.
        """
        with self._lock:
            variants = self._found.setdefault((state, wanted.kind), _OfKind())
            if variants.refusal is not None:
                raise variants.refusal.again()
            variants.tries += 1
            try:
                if variants.tries > MOST_VARIANTS:
                    raise NoKernel(
                        f"its branches on numbers have gone {MOST_VARIANTS} ways, each with a kernel of its own",
                        hint="compute with the numbers instead of deciding with `if`",
                    )
                variants.found.append(self._derived(state, wanted))
            except OpwrightError as refusal:
                if not isinstance(refusal, TracingFailed):  # which may come of these numbers alone
                    variants.refusal = refusal.again()
                raise
            return variants.found[-1]

    def _derived(self, state: State, wanted: Wanted) -> Variant:
        kind = wanted.kind
        rounded = not_yet if kind.at_random else None
        update, names = self._update(state, wanted, rounded)
        if kind.device == "cuda" or self._settings.cuda_on_host:
            return self._cuda_table(update, kind)
        if kind.is_flat:
            with contextlib.suppress(*([] if kind.is_part else [NotElementwise])):
                return self._table(update)
        if kind.is_part:
            raise NotElementwise(
                "parts of the parameter and its states lie in memory in other orders",
                hint="make the parts contiguous before the optimizer is made",
            )
        return self._tensor(update, names)

    def _update(self, state: State, wanted: Wanted, rounded: Rounded | None) -> tuple[Update, list[str]]:
        """The update of a kind as a Program, and the names of its arguments."""
        from opwright.operators.updates import derive_update  # imports sympy, which PyTorch's optimizers do not need

        update, names, results = update_of(self._definition, wanted.kind, wanted.hyper, rounded)
        specs = _specs_of(names, wanted)
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

    def text(self, wanted: Wanted) -> str:
        """The source of a kernel, without building it."""
        from opwright.operators.updates import table_source, tensor_source  # as above

        update, _ = self._update(self._outside.now(), wanted, None)
        with contextlib.suppress(NotElementwise):
            return table_source(update, STEP, self._origin).source.text
        return tensor_source(update, self._origin).text

    def _table(self, update: Update) -> TableVariant:
        from opwright.operators.updates import table_source  # as above

        emitted = table_source(update, STEP, self._origin)
        run = self._built(Source(emitted.source.name, emitted.source.text))
        return TableVariant(run, emitted.source.name, run(0), emitted.operands, emitted.numbers, emitted.source.text)

    def _cuda_table(self, update: Update, kind: Kind) -> TableVariant:
        from opwright.operators.updates import cuda_table_source  # as above

        examine("cuda", self._settings)
        if not kind.is_flat:
            raise NotElementwise("its states or its gradient lie in memory in another order than the parameter")
        source, updated = cuda_table_source(update, STEP, self._origin)
        run = self._built(source)
        (path,) = build([source], self._settings)
        launch = load_launcher(path, f"{source.name}_{LAUNCH}")
        return TableVariant(
            run, source.name, run(0), updated.operands, updated.numbers, source.text, source.device, launch
        )

    def _tensor(self, update: Update, names: list[str]) -> TensorVariant:
        from opwright.operators.updates import tensor_source  # as above

        source = tensor_source(update, self._origin)
        return TensorVariant(self._built(source), source.name, tuple(names), update.replaced, source.text)

    def _built(self, source: Source) -> Launcher:
        self.built += 1
        (path,) = build([source], self._settings)
        return load_launcher(path, source.name)

    def watch(self, lists: list[list[torch.Tensor]], kept: dict[torch.Tensor, Any]) -> Watched | None:
        """Look at parameters, their gradients and their states, once the hot path is built."""
        return watching.look(lists, kept)


def _specs_of(names: Sequence[str], wanted: Wanted) -> list[ArgumentSpec]:
    """What the arguments of an update are, for its trace."""
    numbers, tensors = wanted.numbers, wanted.tensors
    return [
        NumberSpec(name, numbers[name])
        if name in numbers
        else TensorSpec(name, tensors[name].dtype, tuple(tensors[name].shape))
        for name in names
    ]
