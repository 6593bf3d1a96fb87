"""One case: who serves it, with how many kernels and library calls, and whether its results are eager's."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from opwright.api.operator import Operator
from opwright.binding.variants.backends import Backend
from opwright.checking.accuracy import Comparison
from opwright.checking.finding import Fault
from opwright.errors import OpwrightError, UntraceableReference
from opwright.ir.program import Call, Kernel, Program
from opwright.operators.stages import Derivation, derive
from opwright.settings import Settings
from opwright.tracing.interface.specs import describe
from tests.opinfo.cases import Case
from tests.suite.strides import stride_difference

Tensors = Sequence[torch.Tensor | None]

# Eager's own float64 kernel computes with a constant of float32: hardsigmoid_backward with 1.0f / 6.0f.
_COARSE_IN_EAGER = {"nn_functional_hardsigmoid"}
_EPS_OF_FLOAT32 = 2**-23


@dataclass(frozen=True, slots=True)
class Service:
    """Who serves a case.

    Attributes:
        rung: "kernel" without any library call, "library" with some, "reference", or "untraceable" by torch too.
        reason: Why not a better one.
        kernels: How many fused kernels run, forward and backward.
        calls: How often each library operation is called, forward and backward.
        wrong: What differs from eager, in words; empty if nothing does or nothing was run.
    """

    rung: str
    reason: str = ""
    kernels: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    wrong: str = ""


def serve(case: Case, settings: Settings | None, backend: Backend = "cpp") -> Service:
    """Derive kernels for a case; with settings also build them, run them and compare with eager."""
    try:
        derivation = _derive(case, backend)
    except UntraceableReference as refusal:
        return Service("untraceable", refusal.fact)
    except OpwrightError as refusal:
        return _not_served(case, refusal.fact)
    except Exception as error:
        return _not_served(case, f"{type(error).__name__}: {str(error).strip().splitlines()[:1]}")
    programs = [program for program in (derivation.forward, derivation.backward) if program is not None]
    calls = Counter(call for program in programs for call in _calls(program))
    kernels = sum(isinstance(step, Kernel) for program in programs for step in program.steps)
    rung = "library" if calls else "kernel"
    if settings is None:
        return Service(rung, kernels=kernels, calls=calls)
    try:
        declined, wrong = _compare(case, settings, backend)
    except Exception as error:
        expected = _raised_by_eager(case)
        same = isinstance(error, type(expected)) and str(error) == str(expected)
        declined, wrong = "", "" if same else f"raises {type(error).__name__}: {str(error).strip().splitlines()[:1]}"
    return Service("reference" if declined else rung, declined, kernels, calls, wrong)


def _derive(case: Case, backend: Backend) -> Derivation:
    names = [parameter.name for parameter in case.signature.parameters]
    specs = describe(names, case.tensors, gradients=True)
    return derive(case.function, specs, case.function.__name__, backend=backend)


def _calls(program: Program) -> list[str]:
    calls = [step for step in program.steps if isinstance(step, Call)]
    return [f"{call.function}.{call.overload}".removesuffix(".").removeprefix("aten::") for call in calls]


def _not_served(case: Case, reason: str) -> Service:
    """The reference serves; is it traceable at all, by torch's own tracer?"""

    def forward_and_backward(*tensors: torch.Tensor) -> list[torch.Tensor | None]:
        return [tensor for tensors in _outputs_and_gradients(case.function, tensors, 0) for tensor in tensors]

    try:
        tracer = make_fx(forward_and_backward, tracing_mode="symbolic", _error_on_data_dependent_ops=True)
        tracer(*_copies(case.tensors))
    except Exception as error:
        return Service("untraceable", f"{type(error).__name__}: {str(error).strip().splitlines()[:1]}")
    return Service("reference", reason)


def _compare(case: Case, settings: Settings, backend: Backend) -> tuple[str, str]:
    """Why kernels did not serve, and what is wrong; both empty if all is well."""
    about = {"name": case.function.__name__, "signature": case.signature, "settings": settings}
    operator = Operator(case.function, freeze=("info", "sample"), **about)

    def pinned(*tensors: torch.Tensor) -> Any:
        returned = operator.on(backend)(*tensors)
        return (returned,) if isinstance(returned, torch.Tensor) else returned

    try:
        actual = _outputs_and_gradients(pinned, _copies(case.tensors))
    except OpwrightError as refusal:
        return refusal.fact, ""
    if operator.last_rung != backend:
        return "a guard of its new kernel fails for these arguments", ""
    return "", _difference(case, actual) or _leaves_the_hot_path(operator, case)


def _leaves_the_hot_path(operator: Operator, case: Case) -> str:
    """Whether the hot path in C++, if it is built, does not take a second call; a failed attempt costs milliseconds."""
    variants = operator.variants
    play = variants and variants.play_pinned
    if not play or play(*_copies(case.tensors)) is not NotImplemented:
        return ""
    return "the hot path fails in a call like the first"


def _raised_by_eager(case: Case) -> Exception | None:
    try:
        _outputs_and_gradients(case.function, _copies(case.tensors))
    except Exception as error:
        return error
    return None


def compared(case: Case, candidate: Callable[..., Sequence[torch.Tensor]]) -> str:
    """What of a candidate differs from eager, in words; empty if nothing does."""
    return _difference(case, _outputs_and_gradients(candidate, _copies(case.tensors)))


def _difference(case: Case, actual: list[Tensors]) -> str:
    eager = _outputs_and_gradients(case.function, _copies(case.tensors))
    exact = None if _is_random(case) else _exactly(case)
    try:
        for what, mine, theirs, true in zip(("output", "gradient"), actual, eager, exact or eager, strict=True):
            _agree(what, mine, theirs, true, case)
    except (Fault, AssertionError) as fault:
        return str(fault).splitlines()[0]
    pairs = ((a, e) for a, e in zip(actual[0], eager[0], strict=True) if a is not None and e is not None)
    return next((f"output: {differs}" for pair in pairs if (differs := stride_difference(*pair))), "")


def _agree(what: str, mine: Tensors, theirs: Tensors, true: Tensors, case: Case) -> None:
    for position, (actual, eager) in enumerate(zip(mine, theirs, strict=True)):
        missing = (actual is None) != (eager is None)
        if missing and not all(tensor is None or not tensor.any() for tensor in (actual, eager)):
            raise Fault(f"{what} {position} is {'missing' if actual is None else 'there'}, unlike eager's")
    kept = [p for p, pair in enumerate(zip(mine, theirs, strict=True)) if None not in [*map(type, pair), *pair]]
    triples = [[tensors[p].detach() for p in kept] for tensors in (mine, theirs, true)]  # type: ignore[union-attr]
    if case.tensors[0].dtype is torch.float64:  # nothing is more exact than eager, which may cancel too
        rtol = _EPS_OF_FLOAT32 if case.function.__name__ in _COARSE_IN_EAGER else 1e-8
        for actual, eager in zip(*triples[:2], strict=True):
            torch.testing.assert_close(actual, eager, rtol=rtol, atol=1e-10, equal_nan=True)
    else:
        Comparison(what, *triples, inputs=list(case.tensors)).judge()


def _outputs_and_gradients(
    function: Callable[..., Sequence[torch.Tensor]], given: Sequence[torch.Tensor], seed: int = 1
) -> list[Tensors]:
    """Run forward and backward from the same state of the random generator."""
    if seed:
        torch.manual_seed(seed)
    outputs = function(*given)
    differentiable = [output for output in outputs if output.requires_grad]
    wanted = [tensor for tensor in given if tensor.requires_grad]
    if not differentiable:
        return [outputs, [None] * len(wanted)]
    cotangents = [_ramp(output) for output in differentiable]
    return [outputs, torch.autograd.grad(differentiable, wanted, cotangents, allow_unused=True)]


def _ramp(output: torch.Tensor) -> torch.Tensor:
    """A cotangent: positive, and neither large nor small."""
    ramp = torch.linspace(0.5, 1.5, output.numel(), dtype=torch.float64) if output.numel() else torch.zeros(0)
    return ramp.reshape(output.shape).to(output)


def _copies(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor.detach().requires_grad_(tensor.requires_grad) for tensor in tensors]


def _is_random(case: Case) -> bool:
    device = case.tensors[0].device
    state = torch.cuda.get_rng_state if device.type == "cuda" else torch.random.get_rng_state
    before = state()
    case.function(*case.tensors)
    return not torch.equal(before, state())


def _exactly(case: Case) -> list[Tensors] | None:
    """The results in float64; None if the operation refuses."""
    doubles = [_doubled(tensor).requires_grad_(tensor.requires_grad) for tensor in case.tensors]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _outputs_and_gradients(case.function, doubles)
    except (RuntimeError, TypeError):
        return None


def _doubled(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().double() if tensor.dtype is torch.float32 else tensor.detach()
