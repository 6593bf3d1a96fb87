"""What a page shows of memory, second derivatives and the machine's limits, measured at every sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import torch

from opwright.benchmark.measure import compiled
from opwright.benchmark.saved import kept_by
from opwright.benchmark.second_order import second_order
from opwright.benchmark.timings import COMPILED, REFERENCE
from opwright.benchmark.work import Work, measured_limits, work_of
from opwright.errors import OpwrightError
from opwright.ir.expressions.integer import evaluate
from opwright.ir.program import buffers_of, size_symbol
from opwright.samples import Progress, Sample, told

if TYPE_CHECKING:
    from opwright.operators.base import BaseOperator
    from opwright.operators.stages import Derivation

_RUNG: Final = "cpp"


def measure_more(operator: BaseOperator, *, compile: bool = True, progress: Progress | None = None) -> dict[str, Any]:
    """Measure what `bench` does not, in float32 on the CPU, as fields of `PageFacts`.

    Args:
        operator: With samples.
        compile: Whether `torch.compile` takes part.
        progress: Told what is under way.
    """
    assert operator.samples is not None
    samples = list(told(operator.samples, operator.name)("cpu", torch.float32))
    kept, second = [], []
    for done, sample in enumerate(samples):
        if progress:
            progress(f"{sample.name}: memory and second derivatives", done, len(samples) + 1)
        contenders = _contenders(operator, compile)
        kept += [each.to_json() for each in kept_by(sample, contenders)]
        second += [each.to_json() for each in second_order(sample, contenders)]
    if progress:
        progress("the machine's limits", len(samples), len(samples) + 1)
    limits = measured_limits().to_json()
    return {
        "memory": {"entries": kept},
        "second_order": {"entries": second},
        "roofline": {"limits": limits, "work": works(operator, samples)},
    }


def _contenders(operator: BaseOperator, compile: bool) -> dict[str, Callable[..., Any]]:
    found = {REFERENCE: operator.reference}
    if any(rung.name == _RUNG and rung.available for rung in operator.rungs()):
        found[_RUNG] = operator.on(_RUNG)
    return found | ({COMPILED: compiled(operator.reference)} if compile else {})


def works(operator: BaseOperator, samples: list[Sample]) -> list[dict[str, Any]]:
    """The bytes and operations of the passes at each sample; those whose work is not known are left out."""
    try:
        derivation = operator.derivation()
    except OpwrightError:
        return []
    found = []
    for sample in samples:
        forward, training = _works(derivation, sample)
        for passage, work in (("forward", forward), ("training", training)):
            if work is not None and work.operations:
                counted = {"size_bytes": work.size_bytes, "operations": work.operations}
                found.append({"sample": sample.name, "passage": passage, **counted})
    return found


def _works(derivation: Derivation, sample: Sample) -> tuple[Work | None, Work | None]:
    """Of the forward pass, and of both."""
    shapes = dict(zip((buffer.name for buffer in derivation.forward.inputs), sample.tensors(), strict=False))
    if len(shapes) != len(sample.tensors()):
        return None, None  # some arguments are no tensors of the Program, such as numbers
    known = {name: tuple(tensor.shape) for name, tensor in shapes.items()}
    if any(len(known[buffer.name]) != len(buffer.shape) for buffer in derivation.forward.inputs):
        return None, None
    sizes = _sizes(known)
    try:
        forward = work_of(derivation.forward, sizes)
        if derivation.backward is None or forward is None:
            return forward, None
        backward = work_of(derivation.backward, sizes | _sizes(_backward_shapes(derivation, known, sizes)))
    except KeyError:  # a size that only the trace knows
        return None, None
    return forward, backward and forward + backward


def _backward_shapes(
    derivation: Derivation, known: Mapping[str, tuple[int, ...]], sizes: Mapping[str, int]
) -> dict[str, tuple[int, ...]]:
    """The shape of each input of the backward pass: an argument, a cotangent, or a tensor that forward makes."""
    forward, backward = derivation.forward, derivation.backward
    assert backward is not None
    buffers, plan = buffers_of(forward), derivation.plan
    made = [
        *(forward.outputs[position] for position in plan.saved.outputs),
        *forward.outputs[plan.outputs :],
        *(forward.outputs[position] for position in plan.tangents),
    ]
    arguments = len(backward.inputs) - len(made)
    found = {buffer.name: known[buffer.name] for buffer in backward.inputs[:arguments]}
    for buffer, output in zip(backward.inputs[arguments:], made, strict=True):
        found[buffer.name] = tuple(evaluate(size, sizes) for size in buffers[output].shape)
    return found


def _sizes(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    return {str(size_symbol(name, d)): size for name, shape in shapes.items() for d, size in enumerate(shape)}
