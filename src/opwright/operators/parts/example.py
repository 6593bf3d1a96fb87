"""What is told of an operator by its first sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from opwright.errors import OutsideTensor
from opwright.operators.parts.capturing import Capturing
from opwright.samples import Sample, SampleFactory, first_sample
from opwright.tracing.interface.signature import Signature, place_of
from opwright.tracing.interface.specs import requiring_gradients

if TYPE_CHECKING:
    from opwright.operators.stages import Derivation


class HasExample:
    """The part of an operator that derives what people read, for its first sample."""

    reference: Callable[..., Any]
    samples: SampleFactory | None
    capture: Callable[[], None]
    captures: Callable[[OutsideTensor], bool]
    _short_name: Any
    _signature: Signature
    _captured: Capturing | None
    _flattened: Callable[[Sequence[Any]], tuple[Any, Sequence[Any]]]

    def derivation(self) -> Derivation:
        """What is derived for the first sample: graphs, programs and sources.

        Raises:
            SamplesMissing: If the operator has no samples.
        """
        derived: Derivation = self.of_example(lambda flat, args: flat._derive(requiring_gradients(args), True))
        return derived

    def function_source(self) -> str:
        """The emitted text of the rung "function", for the first sample."""
        text: str = self.of_example(lambda flat, args: flat._derive_function(args)[0])
        return text

    def of_example(self, work: Callable[[Any, Sequence[Any]], Any]) -> Any:
        """Do something with the operator of flat arguments for the first sample, and these arguments."""
        try:
            return work(*self._flat_example())
        except OutsideTensor as refusal:
            if not self.captures(refusal):
                raise
        self.capture()
        return work(*self._flat_example())

    def _example(self) -> Sample:
        return first_sample(self._short_name, self.samples, place_of(self.reference), self._signature.bind)

    def _flat_example(self) -> tuple[Any, Sequence[Any]]:
        args = self._example().args
        if self._captured is None:
            return self._flattened(args)
        operator, tensors = self._captured.now()
        flat: tuple[Any, Sequence[Any]] = operator._flattened([*tensors, *args])
        return flat
