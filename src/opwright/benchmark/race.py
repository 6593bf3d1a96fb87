"""Race: all contenders on one sample. They are timed first and checked afterwards."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch

from opwright.benchmark.stopwatch import Measure, Plan, Thunk, Timing, interleave
from opwright.benchmark.timings import Entry
from opwright.binding.native import native
from opwright.checking.accuracy import Comparison
from opwright.checking.calls import exact, fresh, gradients_of, outputs_of, random_gradients, reached, tracked, widened
from opwright.checking.finding import Fault, Skipped, by_the_reference, one_line
from opwright.checking.subject import Candidate
from opwright.samples import Sample, tensors_in

_PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Runner:
    """A contender that can run: what is timed."""

    forward: Thunk
    training: Thunk | None


@dataclass(frozen=True, slots=True)
class Course:
    """One sample, ready for all contenders.

    Attributes:
        call: The arguments; those that can require a gradient do.
        cotangents: The cotangents; empty if the reference is not differentiable here.
        reason: Why there are none.
        name: The name of the sample.
    """

    call: Sample
    cotangents: list[torch.Tensor]
    reason: str

    @property
    def name(self) -> str:
        """The name of the sample."""
        return self.call.name


def race(
    sample: Sample,
    contenders: Mapping[str, Candidate],
    *,
    plan: Plan,
    measure: Measure | None = None,
    tell: Callable[[str], object] = lambda _: None,
) -> list[Entry]:
    """Time every contender, then compare what it computes with the reference in float64.

    Args:
        sample: The arguments.
        contenders: By name; the one called "composed" is the reference.
        plan: How long to measure.
        measure: How a call is measured; None for the time on the processor.
        tell: Told what is under way.
    """
    course = course_of(sample, contenders["composed"])
    stopped: dict[str, Entry] = {}
    runners: dict[str, Runner] = {}
    for name, contender in contenders.items():
        tell(f"warm up {name}")
        try:
            runners[name] = runner_of(contender, course)
        except Skipped as reason:
            stopped[name] = Entry(sample.name, name, "absent", str(reason))
        except Fault as fault:
            stopped[name] = Entry(sample.name, name, "wrong", str(fault))
        except Exception as error:
            stopped[name] = Entry(sample.name, name, "absent", one_line(error))
    tell("wait for the hot path to be built, once on a machine")
    native.wait(_PATIENCE_S)
    tell("time forward")
    with torch.no_grad():
        forward = interleave({name: runner.forward for name, runner in runners.items()}, plan=plan, measure=measure)
    tell("time forward and backward")
    trained = {name: runner.training for name, runner in runners.items() if runner.training}
    training = interleave(trained, plan=plan, measure=measure)
    _change_contents(course.call)
    return [
        stopped.get(name) or _entry(name, contenders, course, forward[name], training.get(name)) for name in contenders
    ]


def course_of(sample: Sample, reference: Candidate) -> Course:
    """Prepare a sample for all contenders."""
    call = tracked(fresh(sample))
    try:
        return Course(call, random_gradients(outputs_of(reference.function, call)), "")
    except Skipped as reason:
        return Course(call, [], str(reason))


def runner_of(contender: Candidate, course: Course) -> Runner:
    """Run forward and backward, which builds what has to be built.

    Raises:
        Fault: The outputs are not differentiable although the reference's are.
        Skipped: Another rung served the call.
        Exception: Whatever the contender raises.
    """
    function, call, cotangents = contender.function, course.call, course.cotangents
    served_before = len(contender.served_by)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a compiler, while it compiles
        with torch.no_grad():
            contender(*call.args, **call.kwargs)
        result = contender(*call.args, **call.kwargs)
        if cotangents:
            gradients_of(tensors_in(result), call, cotangents)
    if strangers := set(contender.served_by[served_before:]) - {contender.rung}:
        raise Skipped(f"the call is served by {', '.join(sorted(strangers))}", hint="explain() says why")
    args, kwargs = call.args, dict(call.kwargs)
    training = _training(contender, course, result) if cotangents else None
    if training:
        training()
    return Runner(lambda: function(*args, **kwargs), training)


def _training(contender: Candidate, course: Course, result: object) -> Thunk:
    """Add as little as possible to the timed work: differentiable outputs go to autograd unchanged."""
    function, args, kwargs = contender.function, course.call.args, dict(course.call.kwargs)
    inputs = [tensor for tensor in course.call.tensors() if tensor.requires_grad]
    cotangents, differentiate = course.cotangents, torch.autograd.grad
    outputs = tensors_in(result)
    flat = isinstance(result, torch.Tensor) or (isinstance(result, list | tuple) and len(outputs) == len(result))
    if flat and len(reached(outputs)) == len(outputs):
        return lambda: differentiate(function(*args, **kwargs), inputs, cotangents, allow_unused=True)
    return lambda: differentiate(reached(tensors_in(function(*args, **kwargs))), inputs, cotangents, allow_unused=True)


def _change_contents(call: Sample) -> None:
    """Give the timed tensors new contents, so that a result remembered by address is found out."""
    with torch.no_grad():
        for tensor in call.tensors():
            if tensor.requires_grad:
                tensor.mul_(0.75)


def _entry(
    name: str, contenders: Mapping[str, Candidate], course: Course, forward: Timing, training: Timing | None
) -> Entry:
    reference, contender = contenders["composed"], contenders[name]
    entry = Entry(course.name, name, "measured", course.reason, forward, training)
    try:
        return _verified(entry, contender, reference, course)
    except Skipped as doubt:
        return replace(entry, reason=f"the result is not verified: {doubt}")
    except Fault as fault:
        void, found = f"the result is wrong, its timing is void: {fault}", fault.finding
        return Entry(course.name, name, "wrong", void, error=found.error, eager_error=found.eager_error)


def _verified(entry: Entry, contender: Candidate, reference: Candidate, course: Course) -> Entry:
    """Add the errors.

    Raises:
        Fault: They are too large.
    """
    eager, true = tracked(fresh(course.call)), tracked(exact(course.call))
    with by_the_reference():
        eager_outputs, true_outputs = outputs_of(reference.function, eager), outputs_of(reference.function, true)
    with torch.no_grad():
        untracked = outputs_of(contender.function, course.call)
    inputs = course.call.tensors()
    accuracy = Comparison("output", untracked, eager_outputs, true_outputs, inputs).judge()
    entry = replace(entry, error=accuracy.error, eager_error=accuracy.eager_error)
    if not course.cotangents:
        return entry
    cotangents = course.cotangents
    outputs = outputs_of(contender.function, course.call)
    Comparison("output", outputs, eager_outputs, true_outputs, inputs).judge()
    actual = gradients_of(outputs, course.call, cotangents)
    with by_the_reference():
        expected = gradients_of(eager_outputs, eager, cotangents)
        truth = gradients_of(true_outputs, true, [widened(gradient) for gradient in cotangents])
    slopes = Comparison("gradient", actual, expected, truth, [*inputs, *cotangents]).judge()
    return replace(entry, gradient_error=slopes.error, eager_gradient_error=slopes.eager_error)
