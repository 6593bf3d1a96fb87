"""The operators that one operator needs besides itself: backward, flat and functional ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import torch
from torch.utils._pytree import TreeSpec

from opwright.binding.mutating import FunctionalReference
from opwright.binding.variant import Plan
from opwright.derivation.backward import backward_reference, backward_signature
from opwright.tracing.flatten import FlatReference, Leaves, flat_signature
from opwright.tracing.signature import Signature

Member = TypeVar("Member")


class Family(Generic[Member]):
    """Makes each of them once.

    Args:
        reference: The function as written, taking every argument by position.
        name: The operator's name, "namespace::name".
        signature: Its parameters.
        names: Their names in generated code.
        identity: What its variants are recorded under.
        make: Makes an operator: `(reference, name=, signature=, identity=)`.
    """

    def __init__(
        self,
        reference: Callable[..., Any],
        name: str,
        signature: Signature,
        names: Sequence[str],
        identity: Callable[[], str | None],
        make: Callable[..., Member],
    ) -> None:
        self._reference = reference
        self._name = name
        self._signature = signature
        self._names = names
        self._identity = identity
        self._make = make
        self._lock = threading.Lock()
        self._backwards: dict[Any, Member] = {}
        self._flats: dict[Any, Member] = {}

    @property
    def flats(self) -> tuple[Member, ...]:
        """Those for structures of arguments."""
        return tuple(self._flats.values())

    @property
    def backwards(self) -> tuple[Member, ...]:
        """Those for gradients."""
        return tuple(self._backwards.values())

    def backward(self, plan: Plan) -> Member:
        """The operator (arguments…, incoming gradients…) → gradients."""
        wanted = (plan.gradients, plan.tangents, plan.result)
        with self._lock:
            if wanted not in self._backwards:
                self._backwards[wanted] = self._make_backward(plan)
            return self._backwards[wanted]

    def flat(self, leaves: Leaves, layout: TreeSpec) -> Member:
        """The operator for arguments of a structure, laid out flat."""
        kind = (layout, tuple([isinstance(leaf, torch.Tensor) for leaf in leaves]))
        found = self._flats.get(kind)
        if found is not None:
            return found
        with self._lock:
            if kind not in self._flats:
                self._flats[kind] = self._make_flat(leaves, layout)
            return self._flats[kind]

    def _make_backward(self, plan: Plan) -> Member:
        places = [plan.result.places[position] for position in plan.tangents]
        suffix = "_".join(self._names[position] for position in plan.gradients)
        if len(plan.tangents) < plan.outputs:
            suffix += "".join(f"_of_{position}" for position in plan.tangents)
        name = f"{self._name}_backward_{suffix}"
        return self._make(
            backward_reference(self._reference, len(self._names), plan.gradients, places),
            name=name,
            signature=backward_signature(self._signature, plan.tangents, plan.outputs, len(plan.gradients)),
            identity=lambda: self._identity_of(f"{name} {places}"),
        )

    def _make_flat(self, leaves: Leaves, layout: TreeSpec) -> Member:
        signature = flat_signature(self._signature, leaves)
        names = [parameter.name for parameter in signature.parameters]
        return self._make(
            FlatReference(self._reference, layout),
            name=self._name,
            signature=signature,
            identity=lambda: self._identity_of(f"{layout} {names}"),
        )

    def functional(self, mutated: Sequence[int]) -> Member:
        """The operator that gives what its arguments are changed to, and changes none."""
        return self._make(
            FunctionalReference(self._reference, mutated),
            name=self._name,
            signature=Signature(self._signature.parameters, None, structured=True),
            identity=lambda: self._identity_of(f"changes {mutated}"),
        )

    def _identity_of(self, member: str) -> str | None:
        mine = self._identity()
        return mine and f"{mine} {member}"
