"""The transforms of an operator that users ask for: derivatives and batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from opwright.binding.transforms.family import Family
from opwright.derivation.batched import Randomness
from opwright.tracing.interface.signature import Signature, declared_outputs, tensor_positions

Member = TypeVar("Member")


class Transforming(Generic[Member]):
    """Methods of an operator that give its transforms, by names of its parameters."""

    reference: Callable[..., Any]
    _signature: Signature
    _family: Family[Member]

    def vjp(self, *names: str) -> Member:
        """The operator (arguments…, cotangents…) → gradients of the named arguments, by default of all tensors.

        It takes one cotangent for each tensor that this operator returns.

        Raises:
            UnsupportedReturn: If the return annotation does not tell how many tensors there are.
            UnsupportedParameter: If a name is not a tensor parameter.
        """
        outputs = declared_outputs(self.reference, self._signature)
        every = tuple(range(outputs))
        return self._family.backward(tensor_positions(self.reference, self._signature, names), every, every, outputs)

    def jvp(self, *names: str) -> Member:
        """The operator (arguments…, tangents of the named ones…) → (results…, tangents…), by default of all tensors.

        Raises:
            UnsupportedParameter: If a name is not a tensor parameter.
        """
        return self._family.jvp(tensor_positions(self.reference, self._signature, names))

    def vmap(self, *names: str, randomness: Randomness = "error") -> Member:
        """The operator over the first dimension of the named arguments, by default of all tensors.

        Args:
            names: Parameters that have a batch; the others are the same for all of it.
            randomness: What `torch.vmap` should do with random numbers.

        Raises:
            UnsupportedParameter: If a name is not a tensor parameter.
        """
        return self._family.batched(tensor_positions(self.reference, self._signature, names), randomness)

    def bound_to(self, values: Mapping[int, Any], outputs: int) -> Member:
        """The operator with some arguments bound to values: it takes the others, and none of these may be None.

        Args:
            values: The bound arguments, by the position of their parameter.
            outputs: How many tensors it returns.
        """
        return self._family.bound(values, outputs)
