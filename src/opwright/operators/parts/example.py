"""What is told of an operator by its first sample; without samples, by a call like its last one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from opwright.binding.variants.by_state import VariantsByState
from opwright.binding.variants.likeness import alike
from opwright.errors import OutsideTensor
from opwright.operators.parts.capturing import Capturing
from opwright.samples import Sample, SampleFactory, first_sample
from opwright.tracing.interface.signature import Signature, place_of
from opwright.tracing.interface.specs import requiring_gradients

if TYPE_CHECKING:
    from opwright.operators.stages import Derivation


class HasExample:
    """The part of an operator that derives what people read, for its first sample or its last call."""

    reference: Callable[..., Any]
    samples: SampleFactory | None
    capture: Callable[[], None]
    captures: Callable[[OutsideTensor], bool]
    _short_name: Any
    _signature: Signature
    _captured: Capturing | None
    _flats: Any
    _flattened: Callable[[Sequence[Any]], tuple[Any, Sequence[Any]]]
    _variants: VariantsByState

    def derivation(self) -> Derivation:
        """What is derived for the first sample: graphs, programs and sources.

        Raises:
            SamplesMissing: If the operator has no samples, and was not called.
        """
        derived: Derivation = self.of_example(lambda flat, args: flat._derive(requiring_gradients(args), True))
        return derived

    def function_source(self) -> str:
        """The emitted text of the rung "function", for the first sample."""
        text: str = self.of_example(lambda flat, args: flat._derive_function(args)[0])
        return text

    def of_example(self, work: Callable[[Any, Sequence[Any]], Any]) -> Any:
        """Do something with the operator of flat arguments for the first sample, and these arguments."""
        if self.samples is None and (called := self.called()) is not None:
            return work(*called)
        try:
            return work(*self._flat_example())
        except OutsideTensor as refusal:
            if not self.captures(refusal):
                raise
        self.capture()
        return work(*self._flat_example())

    def called(self) -> tuple[Any, Sequence[Any]] | None:
        """The operator of flat arguments that served the last new call, and arguments like those of that call.

        None before the first call in this process. Whatever is in their memory are their elements.
        """
        for operator in self._flats:
            if (called := operator.called()) is not None:
                found: tuple[Any, Sequence[Any]] = called
                return found
        return None if self._variants.example is None else (self, alike(self._variants.example))

    def _example(self) -> Sample:
        return first_sample(self._short_name, self.samples, place_of(self.reference), self._signature.bind)

    def _flat_example(self) -> tuple[Any, Sequence[Any]]:
        args = self._example().args
        if self._captured is None:
            return self._flattened(args)
        operator, tensors = self._captured.now()
        flat: tuple[Any, Sequence[Any]] = operator._flattened([*tensors, *args])
        return flat
