"""Variants: the built kernels of one optimizer, by kind and by what the trace assumed of the numbers."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from opwright.binding.fallbacks import Fallbacks
from opwright.binding.variants.backends import examine
from opwright.binding.variants.launcher import load_launcher
from opwright.binding.variants.states import Outside, State
from opwright.codegen.cuda.table import LAUNCH
from opwright.errors import NoKernel, OpwrightError, SideEffect, TracingFailed
from opwright.optim.definition import Definition
from opwright.optim.kinds import Kind
from opwright.optim.serving.deriving import Derived, derive, text_of
from opwright.optim.serving.kernels import Variant, Wanted, Watched, variant_of
from opwright.optim.serving.records import Records
from opwright.optim.serving.watching import watching
from opwright.settings import Settings
from opwright.toolchain.build import build
from opwright.toolchain.process.forks import Lock
from opwright.tracing.effects.watch import unchanged_outside

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
    def _records(self) -> Records:
        return Records(self._definition, self._settings, MOST_VARIANTS)

    @functools.cached_property
    def fallbacks(self) -> Fallbacks:
        """Warns where the definition serves instead of kernels."""
        usual = lambda _: "its definition, operation by operation"  # noqa: E731
        return Fallbacks(self._definition.name, self._settings, usual)

    @contextlib.contextmanager
    def undoing(self) -> Iterator[None]:
        """What the definition changes outside of itself in this block is undone."""
        with contextlib.suppress(SideEffect), unchanged_outside(self._definition.name, self._definition.function):
            yield

    def state(self) -> State | None:
        """What the definition reads outside of its arguments now; None if that cannot be compared."""
        try:
            return self._outside.now()
        except OpwrightError as refusal:
            self.fallbacks.tell(refusal)
            return None

    def known(self, state: State, kind: Kind, device: torch.device) -> list[Variant]:
        """The variants of a kind so far, those of other processes among them; the same for all devices of its type."""
        return self._of_kind(state, kind).found

    def _of_kind(self, state: State, kind: Kind) -> _OfKind:
        found = self._found.get((state, kind))
        if found is None:
            recorded = self._recorded(state, kind)
            found = self._found.setdefault((state, kind), _OfKind(recorded, len(recorded)))
        return found

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
            variants = self._of_kind(state, wanted.kind)
            if variants.refusal is not None:
                raise variants.refusal.again()
            variants.tries += 1
            try:
                if variants.tries > MOST_VARIANTS:
                    raise NoKernel(
                        f"its branches on numbers have gone {MOST_VARIANTS} ways, each with a kernel of its own",
                        hint="compute with the numbers instead of deciding with `if`",
                    )
                made = self._derived(state, wanted)
            except OpwrightError as refusal:
                if not isinstance(refusal, TracingFailed):  # which may come of these numbers alone
                    variants.refusal = refusal.again()
                raise
            for known in variants.found:
                if known.name == made.name:  # which did not fail for these numbers, but for the values of a tensor
                    variants.tries -= 1
                    return known
            variants.found.append(made)
            return made

    def _recorded(self, state: State, kind: Kind) -> list[Variant]:
        """What other processes derived for a kind."""
        found: list[Variant] = []
        with contextlib.suppress(OpwrightError):  # which a derivation says again
            for derived in self._records.read(state.identity, kind):
                found.append(self._built(derived))  # those before a failure are kept
        return found

    def _derived(self, state: State, wanted: Wanted) -> Variant:
        for_gpus = self._for_gpus(wanted.kind)
        if for_gpus:
            examine("cuda", self._settings)
        derived = derive(self._definition, state, wanted, for_gpus=for_gpus)
        variant = self._built(derived)
        self._records.write(state.identity, wanted.kind, derived)
        return variant

    @property
    def launched(self) -> tuple[str, ...]:
        """The types of devices whose kernels are in CUDA."""
        return ("cpu", "cuda") if self._settings.cuda_on_host else ("cuda",)

    def _for_gpus(self, kind: Kind) -> bool:
        return kind.device in self.launched

    def _built(self, derived: Derived) -> Variant:
        source = derived.source
        self.built += 1
        (path,) = build([source], self._settings)
        run = load_launcher(path, source.name)
        in_one = source.device is not None and not derived.one_by_one
        launch = load_launcher(path, f"{source.name}_{LAUNCH}") if in_one else None
        more = {"text": source.text, "device": source.device, "launch": launch, "one_by_one": derived.one_by_one}
        return variant_of(run, source.name, derived.operands, derived.numbers, **more)

    def text(self, wanted: Wanted) -> str:
        """The source of a kernel, without building it."""
        return text_of(self._definition, self._outside.now(), wanted)

    def watch(self, lists: list[list[torch.Tensor]], kept: dict[torch.Tensor, Any]) -> Watched | None:
        """Look at parameters, their gradients and their states, once the hot path is built."""
        return watching.look(lists, kept)
