"""The transforms of an operator for serving: if one cannot be made, its reference serves instead.

A backward pass cannot fall back, so what it calls must not fail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opwright.binding.fallbacks import Fallbacks
from opwright.binding.rungs import RungName
from opwright.binding.transforms.transformed import Transformable, Transformed
from opwright.binding.variants.variant import Plan
from opwright.derivation.backward import backward_reference
from opwright.derivation.batched import Randomness, batched_reference
from opwright.derivation.forward import jvp_reference
from opwright.tracing.recording.faults import fault_of


class SafeTransforms:
    """The transforms of one operator.

    Args:
        transforms: Makes them, if it can.
        reference: The function as written, taking every argument by position.
        arity: How many arguments it takes.
        fallbacks: Warned of failures.

    Attributes:
        reference: The same.
    """

    def __init__(
        self, transforms: Transformed, reference: Callable[..., Any], arity: int, fallbacks: Fallbacks
    ) -> None:
        self._transforms = transforms
        self.reference = reference
        self._references = ReferenceOnly(reference, arity)
        self._fallbacks = fallbacks

    def backward_of(self, plan: Plan) -> Transformable:
        """The operator (arguments…, cotangents…, intermediates…) → gradients of a plan's backward kernel."""
        places = tuple(plan.result.places[position] for position in plan.tangents)
        return self.backward(plan.gradients, places, plan.tangents, plan.outputs, plan.saved.known)

    def backward(self, *which: Any) -> Transformable:
        """The operator of the gradients, see `Family.backward`."""
        return self._made("backward", *which)

    def jvp(self, moving: tuple[int, ...]) -> Transformable:
        """(arguments…, tangents of those at `moving`…) → results and tangents."""
        return self._made("jvp", moving)

    def batched(self, positions: tuple[int, ...], randomness: Randomness) -> Transformable:
        """The operator over the first dimension of the arguments at `positions`."""
        return self._made("batched", positions, randomness)

    def _made(self, transform: str, *how: Any) -> Transformable:
        made: Transformable
        try:
            made = getattr(self._transforms, transform)(*how)
        except Exception as error:
            self._fallbacks.tell(fault_of(error))
            made = getattr(self._references, transform)(*how)
        return made


class ReferenceOnly:
    """A replacement for an operator that could not be made; its transforms are PyTorch's own.

    Args:
        reference: The function, taking every argument by position.
        arity: How many arguments it takes.

    Attributes:
        last_rung: The rung that serves its calls.
        overload: None: it is not at the dispatcher.
    """

    last_rung: RungName | None = "composed"
    overload = None

    def __init__(self, reference: Callable[..., Any], arity: int) -> None:
        self._reference = reference
        self._arity = arity

    def __call__(self, *args: Any) -> Any:
        """Run the reference."""
        return self._reference(*args)

    @property
    def transforms(self) -> Transformed:
        """Its transforms."""
        return self

    def backward(
        self,
        wanted: tuple[int, ...],
        places: tuple[int, ...],
        tangents: tuple[int, ...],
        outputs: int,
        known: tuple[str, ...] = (),
    ) -> ReferenceOnly:
        """(arguments…, cotangents…, values…) → gradients of the arguments at `wanted`."""
        reference = backward_reference(self._reference, self._arity, wanted, places)
        return ReferenceOnly(reference, self._arity + len(places) + len(known))

    def jvp(self, moving: tuple[int, ...]) -> ReferenceOnly:
        """(arguments…, tangents of those at `moving`…) → results and tangents."""
        return ReferenceOnly(jvp_reference(self._reference, self._arity, moving), self._arity + len(moving))

    def batched(self, positions: tuple[int, ...], randomness: Randomness) -> ReferenceOnly:
        """The function over the first dimension of the arguments at `positions`."""
        return ReferenceOnly(batched_reference(self._reference, self._arity, positions, randomness), self._arity)
