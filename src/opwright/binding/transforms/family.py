"""The operators derived from one operator: transforms, flat and functional ones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import Parameter
from typing import Any, Generic, TypeVar

import torch
from torch.utils._pytree import TreeSpec

from opwright.binding.functional import FunctionalReference
from opwright.binding.variants.states import State
from opwright.derivation.backward import backward_reference, backward_signature, value_names
from opwright.derivation.batched import Randomness, batched_reference, batched_signature
from opwright.derivation.bound import bound_reference, bound_signature
from opwright.derivation.forward import jvp_reference, jvp_signature
from opwright.toolchain.process.forks import Lock
from opwright.tracing.interface.flatten import FlatReference, Leaves, flat_signature, leaves_of
from opwright.tracing.interface.signature import Signature

Member = TypeVar("Member")
Identity = Callable[[State], str | None]
_LONGEST_NAME = 120


class Family(Generic[Member]):
    """Makes each of them once.

    Args:
        reference: The function as written, taking every argument by position.
        name: The operator's name, "namespace::name".
        signature: Its parameters.
        names: Their names in generated code.
        identity: The key under which its variants for a state are recorded.
        make: Makes an operator: `(reference, name=, signature=, identity=)`.
    """

    def __init__(
        self,
        reference: Callable[..., Any],
        name: str,
        signature: Signature,
        names: Sequence[str],
        identity: Identity,
        make: Callable[..., Member],
    ) -> None:
        self._reference = reference
        self._name = name
        self._signature = signature
        self._names = names
        self._identity = identity
        self._make = make
        self._lock = Lock()
        self._relatives: dict[Any, Member] = {}

    @property
    def flats(self) -> tuple[Member, ...]:
        """Those for structures of arguments."""
        return self._of_kind("flat")

    @property
    def backwards(self) -> tuple[Member, ...]:
        """Those for gradients."""
        return self._of_kind("backward")

    def _of_kind(self, wanted: str) -> tuple[Member, ...]:
        return tuple(member for (kind, *_), member in list(self._relatives.items()) if kind == wanted)

    def backward(
        self,
        wanted: tuple[int, ...],
        places: tuple[int, ...],
        tangents: tuple[int, ...],
        outputs: int,
        known: tuple[str, ...] = (),
    ) -> Member:
        """The operator (arguments…, cotangents…, values…) → gradients.

        Args:
            wanted: Positions of the arguments whose gradients it gives.
            places: Positions, in what the reference returns, of the outputs that have a cotangent.
            tangents: Which of its tensors these are.
            outputs: How many tensors it returns.
            known: Digests of the given values, which the forward pass has saved.
        """

        def made() -> Member:
            suffix = "_".join(self._names[position] for position in wanted)
            if len(tangents) < outputs:
                suffix += "".join(f"_of_{position}" for position in tangents)
            name = _bounded(f"{self._name}_backward_{suffix}")
            values = value_names(self._signature, len(known))
            digests = dict(zip(values, known, strict=True))
            return self._member(
                backward_reference(self._reference, len(self._names), wanted, places, digests),
                name,
                backward_signature(self._signature, tangents, outputs, len(wanted), values),
                f"{name} {places} {known}",
            )

        return self._relative(("backward", wanted, places, tangents, outputs, known), made)

    def jvp(self, moving: tuple[int, ...]) -> Member:
        """The operator (arguments…, tangents of those at `moving`…) → results and tangents."""

        def made() -> Member:
            name = self._called("jvp", moving)
            reference = jvp_reference(self._reference, len(self._names), moving)
            return self._member(reference, name, jvp_signature(self._signature, moving), name)

        return self._relative(("jvp", moving), made)

    def batched(self, positions: tuple[int, ...], randomness: Randomness) -> Member:
        """The operator over the first dimension of the arguments at `positions`."""

        def made() -> Member:
            name = self._called("vmap", positions)
            reference = batched_reference(self._reference, len(self._names), positions, randomness)
            return self._member(reference, name, batched_signature(self._signature), f"{name} {randomness}")

        return self._relative(("vmap", positions, randomness), made)

    def bound(self, values: Mapping[int, Any], outputs: int) -> Member:
        """The operator with the arguments at some positions bound to values; it returns so many tensors."""
        texts = tuple((position, repr(values[position])) for position in sorted(values))

        def made() -> Member:
            left_out = [position for position, value in values.items() if value is None]
            name = self._called("without" if left_out else "given", left_out)
            if len(left_out) < len(values):
                name += f"_{hashlib.sha256(repr(texts).encode()).hexdigest()[:8]}"
            reference = bound_reference(self._reference, len(self._names), values)
            return self._member(reference, name, bound_signature(self._signature, values, outputs), f"bound {texts}")

        return self._relative(("bound", texts), made)

    def _called(self, transform: str, positions: Sequence[int]) -> str:
        return _bounded("_".join([self._name, transform, *[self._names[position] for position in positions]]))

    def _relative(self, key: Any, make: Callable[[], Member]) -> Member:
        found = self._relatives.get(key)
        if found is not None:
            return found
        with self._lock:
            if key not in self._relatives:
                self._relatives[key] = make()
            return self._relatives[key]

    def flat(self, leaves: Leaves, layout: TreeSpec) -> Member:
        """The operator for flattened arguments of a structure."""

        def made() -> Member:
            signature = flat_signature(self._signature, leaves)
            names = [parameter.name for parameter in signature.parameters]
            return self._member(FlatReference(self._reference, layout), self._name, signature, f"{layout} {names}")

        return self._relative(("flat", layout, tuple([isinstance(leaf, torch.Tensor) for leaf in leaves])), made)

    def functional(self, mutated: Sequence[int]) -> Member:
        """The functional operator, which returns the new values of mutated arguments."""
        parameters = [replace(p, keyword_only=False, default=Parameter.empty) for p in self._signature.parameters]
        signature = Signature(tuple(parameters), None, structured=True)
        return self._member(FunctionalReference(self._reference, mutated), self._name, signature, f"changes {mutated}")

    def functional_flat(self, mutated: Sequence[int], leaves: Leaves, layout: TreeSpec) -> Member:
        """The functional operator for flattened arguments of a structure."""

        def made() -> Member:
            signature = flat_signature(self._signature, leaves)
            reference = FunctionalReference(FlatReference(self._reference, layout), leaves_of(mutated, leaves))
            names = [parameter.name for parameter in signature.parameters]
            return self._member(reference, self._name, signature, f"changes {mutated} {layout} {names}")

        tensors = tuple([isinstance(leaf, torch.Tensor) for leaf in leaves])
        return self._relative(("flat", "functional", layout, tensors), made)

    def _member(self, reference: Callable[..., Any], name: str, signature: Signature, key: str) -> Member:
        """Make an operator; the key tells its records from those of the others."""

        def identity(state: State) -> str | None:
            mine = self._identity(state)
            return mine and f"{mine} {key}"

        return self._make(reference, name=name, signature=signature, identity=identity)


def _bounded(name: str) -> str:
    """A name that stays readable and short enough for a file when transforms nest."""
    if len(name) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: _LONGEST_NAME - len(digest) - 1]}_{digest}"
