"""A plan: which parameters are updated by what, as long as nothing has moved in memory."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from opwright.binding.environment import PLAIN_TYPES
from opwright.errors import CaptureRefused
from opwright.optim.definition import STEP, Definition
from opwright.optim.factor import with_factor
from opwright.optim.kinds import Kind
from opwright.optim.serving.buckets import Bucket, Given, keeps_numbers, run_composed
from opwright.optim.serving.entries import Manner, copy_gradient, entry_of, overlapping
from opwright.optim.serving.kernels import Kernels
from opwright.optim.serving.parts import number_of, part_of, place_of, placed_alike
from opwright.tracing.torch_hooks.spread import has_spread, spec_of


def refuse_capture(name: str, params: Sequence[torch.Tensor]) -> None:
    """Refuse a step on a GPU in the capture of a CUDA graph; steps on the processor do not ask.

    The processor counts steps and computes numbers, which a replay would not do again.

    Args:
        name: Of the optimizer.
        params: Its parameters.

    Raises:
        CaptureRefused: If there is such a capture.
    """
    if any(param.is_cuda for param in params) and torch.cuda.is_current_stream_capturing():
        raise CaptureRefused(
            f"{name}.step() cannot be captured in a CUDA graph: the processor counts its steps and reads its rates",
            hint="capture the forward and backward passes alone, and call step() after each replay",
        )


class _Without(NamedTuple):
    """One of the parameters of a shape that do not have some states."""

    param: torch.Tensor
    missing: tuple[str, ...]


class Plan:
    """The parameters with gradients, in buckets of one kind.

    Args:
        definition: The update.
        variants: Its kernels.
        params: The parameters that have gradients.
        states: Their states.
        groups: The number of the group of each.
        hyper: The hyper-parameters of each group.
        maximize: Whether each group is maximized.
        manner: How the optimizer updates.
        lists: The parameters of each group, also those without gradients.
        kept: The states of all parameters that have some.
    """

    def __init__(
        self,
        definition: Definition,
        variants: Kernels,
        params: Sequence[torch.Tensor],
        states: Sequence[dict[str, Any]],
        groups: Sequence[int],
        hyper: Sequence[Mapping[str, Any]],
        maximize: Sequence[bool],
        manner: Manner,
        lists: list[list[torch.Tensor]],
        kept: dict[torch.Tensor, Any],
    ) -> None:
        self._definition = definition
        self._hyper = hyper
        self._manner = manner
        self.params = params
        self.groups = groups
        self._states = states
        self._without: dict[int, dict[Hashable, _Without]] = {}
        for param, state, group in zip(params, states, groups, strict=True):
            if missing := tuple(name for name in definition.states if state.get(name) is None):
                of_group = self._without.setdefault(group, {})
                of_group.setdefault((param.shape, param.dtype, param.device, missing), _Without(param, missing))
        self._kept = list(kept.values())
        self._on_gpus = [param for param in params if param.is_cuda][:1]
        self._is_strided = all(param.layout is torch.strided for param in params)
        self.entries = [
            entry_of(definition, param, state, number, group, hyper[group], maximize[group], manner)
            for number, (param, state, group) in enumerate(zip(params, states, groups, strict=True))
        ]
        shared = overlapping(self.entries)
        by_kind: dict[tuple[Kind, Hashable], list[int]] = {}
        self._composed: list[int] = []
        for position, entry in enumerate(self.entries):
            if entry.served and position not in shared:
                alike = placed_alike(entry.specs), entry.param.device, entry.state[STEP].dtype
                by_kind.setdefault((entry.kind, alike), []).append(position)
            else:
                self._composed.append(position)
        self._buckets = [
            Bucket(definition, variants, kind, positions, [self.entries[p] for p in positions],
                   hyper[self.entries[positions[0]].group])
            for (kind, _), positions in by_kind.items()
        ]  # fmt: skip
        rest = [self.entries[position] for position in self._composed]
        self._counts_the_rest = all(not entry.param.numel() and not keeps_numbers(entry.kind) for entry in rest)
        self._held = self._now_held()
        self.written = [*params, *(held for held in self._held if isinstance(held, torch.Tensor))]
        self._parts = [position for position, entry in enumerate(self.entries) if entry.specs]
        self._where = place_of if self._parts else _place
        tensors = [t for t in (*params, *self._held) if isinstance(t, torch.Tensor)]
        self._watched = [t for t in tensors if self._parts or type(t) in PLAIN_TYPES]
        self._memory = [t for t in self._watched if type(t) in PLAIN_TYPES and t.layout is torch.strided]
        self._places = list(map(self._where, self._watched))
        self._shapes = self._now_shapes()
        self._gradients = _facts([param.grad for param in params if param.grad is not None])
        self._points = True
        self._copied = [position for position, entry in enumerate(self.entries) if entry.copied]
        self._seen: list[int] | None = None
        is_simple = not (self._copied or self._parts or self._composed)
        self._everything = (lists, [*map(list, lists)], dict(kept))  # so that no other object has the address of one
        self._watched_natively = variants.watch(lists, kept) if is_simple else None

    def lacks_states(self, group: int, hyper: Mapping[str, Any]) -> bool:
        """Whether other hyper-parameters need states that parameters of a group do not have.

        Args:
            group: The number of the group.
            hyper: Its hyper-parameters.
        """
        return any(
            self._definition.start(name, param, hyper) is not None
            for param, missing in self._without.get(group, {}).values()
            for name in missing
        )

    def refuse_capture(self) -> None:
        """See `refuse_capture`."""
        if self._on_gpus:
            refuse_capture(self._definition.name, self._on_gpus)

    def gradients(self) -> list[torch.Tensor]:
        """The gradients now."""
        return [param.grad for param in self.params if param.grad is not None]

    def holds_unseen(self, lists: list[list[torch.Tensor]], kept: dict[torch.Tensor, Any], manner: Manner) -> bool:
        """Whether `holds` is known to be true without a look from Python at each tensor.

        Args:
            lists: The parameters of each group.
            kept: The states of all parameters.
            manner: How the optimizer updates.
        """
        watched = self._watched_natively
        if watched is None or manner != self._manner or not watched.holds(lists, kept):
            return False
        self._seen = watched.gradients()
        return True

    def holds(
        self,
        params: Sequence[torch.Tensor],
        gradients: Sequence[torch.Tensor],
        kept: Mapping[torch.Tensor, Any],
        manner: Manner,
    ) -> bool:
        """Whether everything is where it was, except that gradients may be others of the same strides.

        Args:
            params: The parameters that have gradients.
            gradients: These.
            kept: The states of all parameters.
            manner: How the optimizer updates.
        """
        held = self._now_held()
        self._seen = None
        return (
            manner == self._manner
            and len(kept) == len(self._kept)
            and all(map(operator.is_, kept.values(), self._kept))
            and len(params) == len(self.params)
            and len(held) == len(self._held)
            and all(map(operator.is_, params, self.params))
            and all(map(operator.is_, held, self._held))
            and list(map(self._where, self._watched)) == self._places
            and self._now_shapes() == self._shapes
            and _facts(gradients) == self._gradients
        )

    def _now_held(self) -> list[Any]:
        return list(itertools.chain.from_iterable(map(dict.values, self._states)))

    def _now_shapes(self) -> list[Any]:
        if not self._is_strided:
            return [(param.shape, param.layout) for param in self.params]
        bits = [*map(_is_negative, self._memory), *map(_is_conjugate, self._memory)]
        return [*[param.shape for param in self.params], *map(_strides, self._memory), *bits]

    def decides_later(self, state: Hashable) -> bool:
        """Whether a step can be called off where its kernels run, so that the processor need not wait to know.

        Args:
            state: What the definition reads outside; None if no kernel can serve.
        """
        return self._counts_the_rest and all(bucket.decides_later(state) for bucket in self._buckets)

    def run(self, given: Given, *, quiet: bool) -> None:
        """Update all parameters.

        Args:
            given: What the step is given.
            quiet: Whether kernels may run: nothing must see the operations.
        """
        if self._seen is not None and quiet:  # then there is nothing beside the buckets
            self._run_buckets(self._seen, given, self.gradients)
            self._let_go()
            return
        gradients = self.gradients()
        for position in self._copied:
            copy_gradient(self.entries[position], gradients[position])
        if self._parts:
            gradients = [part_of(g) if e.specs else g for g, e in zip(gradients, self.entries, strict=True)]
        composed: Sequence[int] = self._composed
        if quiet:
            self._run_buckets(self._places_of(gradients), given, lambda: gradients)
        else:
            composed = range(len(self.entries))
        if composed:
            self._point_to(gradients)
        for position in composed:
            entry = self.entries[position]
            there = entry.param.device if entry.kind.distant_factor else None
            (own,) = with_factor([given.numbers[entry.group]], given.factor, there)
            own = {**own, STEP: float(entry.state[STEP]) + 1}
            run_composed(self._definition, self._hyper[entry.group], entry, own, given.seed)
            if given.undecided is not None:
                given.undecided.count([entry.state])
        if self._manner.written:
            self._write_back(gradients)
        self._let_go()

    def _let_go(self) -> None:
        """Forget the gradients, which belong to the user, who may free them."""
        if self._points:
            self._points = False
            for entry in self.entries:
                if not entry.copied:
                    del entry.tensors["grad"]

    def _places_of(self, gradients: Sequence[torch.Tensor]) -> list[int]:
        """The addresses of gradients, or of their copies."""
        if self._copied or self._composed:  # which may have no address, as sparse gradients
            known = set(self._copied).union(self._composed)
            places = [0 if position in known else _place(grad) for position, grad in enumerate(gradients)]
        else:
            places = list(map(_place, gradients))
        for position in self._copied:
            places[position] = self.entries[position].tensors["grad"].data_ptr()
        return places

    def _run_buckets(
        self, places: Sequence[int], given: Given, gradients: Callable[[], Sequence[torch.Tensor]]
    ) -> None:
        for number, bucket in enumerate(self._buckets):
            mine = places if len(self._buckets) == 1 and not self._composed else [places[p] for p in bucket.positions]
            shift = number_of(bucket.entries[0].specs) << _PARTS_APART
            own_seed = given.seed + (number << _SEEDS_APART) + shift
            bucket.run(given, mine, lambda: self._point_to(gradients()), own_seed)

    def _point_to(self, gradients: Sequence[torch.Tensor]) -> None:
        """Let all entries have these gradients."""
        self._points = True
        for entry, grad in zip(self.entries, gradients, strict=True):
            if not entry.copied:
                entry.tensors["grad"] = torch.view_as_real(grad.detach()) if grad.is_complex() else grad.detach()

    def _write_back(self, gradients: Sequence[torch.Tensor]) -> None:
        for entry, grad in zip(self.entries, gradients, strict=True):
            if entry.copied and grad.layout is torch.strided:
                made = entry.tensors["grad"]
                grad.copy_(torch.view_as_complex(made) if grad.is_complex() else made)


_SEEDS_APART, _PARTS_APART = 40, 52
_PLAIN = frozenset(PLAIN_TYPES)
_place, _strides = torch.Tensor.data_ptr, torch.Tensor.stride
_is_negative, _is_conjugate = torch.Tensor.is_neg, torch.Tensor.is_conj


def _facts(gradients: Sequence[torch.Tensor]) -> list[Any]:
    """What kernels must know of gradients, beside where they are."""
    types, layouts = {type(grad) for grad in gradients}, {grad.layout for grad in gradients}
    if not _PLAIN.issuperset(types) or layouts != {torch.strided}:
        return [_fact(grad) for grad in gradients]
    dtypes = [grad.dtype for grad in gradients]
    is_complex = any(dtype.is_complex for dtype in set(dtypes))
    conjugated = [grad.is_conj() for grad in gradients] if is_complex else []
    return [*map(_strides, gradients), *dtypes, *map(_is_negative, gradients), *conjugated]


def _fact(grad: torch.Tensor) -> Any:
    if grad.layout is not torch.strided or not (type(grad) in _PLAIN or has_spread([grad])):
        return type(grad), grad.layout
    own = part_of(grad)
    return type(grad), spec_of(grad) if has_spread([grad]) else (), own.stride(), own.dtype, own.is_neg(), own.is_conj()
