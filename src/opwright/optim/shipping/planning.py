"""kernels_of, planned: an optimizer → the kernels that its steps use, found by taking some.

class       an optimizer of the default hyper-parameters for each usual shape and dtype
optimizer   one like it, of tensors like its parameters
optimizers  steps, as they are and with scaled gradients, at steps early and late → the variants that served
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch.optim.optimizer import required

from opwright.binding.environment import PLAIN_TYPES
from opwright.codegen.cuda.table import LAUNCH
from opwright.deployment.wheels.optimizers import OptimizerKernels, PlannedOptimizer
from opwright.deployment.wheels.planned import Serving
from opwright.errors import SamplesMissing, WheelUnsupported
from opwright.operators.reference_text import spell
from opwright.optim.classes import optimizer_class
from opwright.optim.definition import STEP
from opwright.optim.kinds import Kind
from opwright.optim.serving.deriving import Derived
from opwright.optim.serving.kernels import Variant
from opwright.optim.shipping.any_sizes import ProbedVariants
from opwright.optim.shipping.packaged_optimizers import optimizer as packaged
from opwright.optim.stepping import SteppingOptimizer
from opwright.toolchain.source import Source
from opwright.tracing.interface.place import place_of

USUAL_SHAPES = (
    (5, 7), (5,), (), (1,), (1, 7), (5, 1), (2, 5, 7), (1, 5, 7), (1, 1, 7), (5, 1, 1), (2, 3, 5, 7), (2, 3, 1, 1),
    (2, 1, 5, 7), (2, 3, 4, 5, 7),
)  # fmt: skip
"""Of weights and biases of linear, convolution and norm layers, also of one channel, and of embeddings."""

_STEPS = (*range(1, 11), *(2**power for power in range(4, 21)))
_COMPARED_STEPS = 3


@dataclass(frozen=True, slots=True)
class _Way:
    """How gradients are scaled in a step: clipped together, or by a GradScaler."""

    clipped: bool
    unscaled: bool


_WAYS = (_Way(False, False), _Way(True, False), _Way(False, True))


@dataclass(frozen=True, slots=True)
class Kernels:
    """The kernels that steps were served by.

    Attributes:
        by_kind: For each kind of parameters, in the order in which they are tried.
        on_gpus: The same of tables in CUDA, for the same kinds; empty if they are not wanted.
        makers: Make the optimizers that took these steps.
    """

    by_kind: Mapping[Kind, Sequence[Variant]]
    on_gpus: Sequence[tuple[Kind, Derived]]
    makers: Sequence[_Maker]

    @property
    def sources(self) -> tuple[Source, ...]:
        """What they are built from, each once."""
        every = (variant for of_kind in self.by_kind.values() for variant in of_kind)
        return tuple({each.name: Source(each.name, each.text) for each in every}.values())

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of the parameters."""
        groups = (group for maker in self.makers for group in maker.groups)
        return tuple(dict.fromkeys(tuple(param.shape) for group in groups for param in group["params"]))

    def records(self) -> dict[str, list[dict[str, Any]]]:
        """What `packaged_optimizers` reads of them."""
        return {repr(kind): [_record(variant) for variant in of_kind] for kind, of_kind in self.by_kind.items()}


def planned(
    cls: type[SteppingOptimizer],
    given: Sequence[type[SteppingOptimizer] | SteppingOptimizer],
    dtypes: Sequence[torch.dtype],
    servings: Sequence[Serving],
) -> PlannedOptimizer:
    """What a wheel holds of an optimizer.

    Args:
        cls: Its class.
        given: The class, or optimizers of it.
        dtypes: Of the parameters that the class is tried with.
        servings: The backends of the wheel.

    Raises:
        SamplesMissing: If there is nothing to take steps with.
        WheelUnsupported: If hyper-parameters have values that no text says.
    """
    makers = [maker for each in given for maker in _tried(cls, each, dtypes, {})]
    return PlannedOptimizer(
        function=cls.definition.function,
        decorator=packaged,
        derive=lambda: _derived(cls, makers, servings),
        agrees=lambda carried: _agree(cls, carried, makers),
    )


def _derived(cls: type[SteppingOptimizer], makers: Sequence[_Maker], servings: Sequence[Serving]) -> OptimizerKernels:
    for_gpus = [serving for serving in servings if serving.backend == "cuda"]
    kernels = _found(cls, makers, for_gpus=bool(for_gpus))
    for kind in kernels.by_kind:
        _refuse_without_text(cls, kind)
    records: dict[str, list[dict[str, Any]]] = {}
    sources: dict[str, Source] = {}
    if any(serving.backend == "cpp" for serving in servings):
        records |= kernels.records()
        sources |= {source.name: source for source in kernels.sources}
    for serving in for_gpus:
        for kind, derived in kernels.on_gpus:
            of_kind = records.setdefault(repr(replace(kind, device=serving.device)), [])
            of_kind.append(record_on_gpu(derived, derived.source.name))
            sources[derived.source.name] = derived.source
    return OptimizerKernels(records, tuple(sources.values()))


def kernels_of(cls: type[SteppingOptimizer], dtypes: Sequence[torch.dtype], hyper: Mapping[str, Any]) -> Kernels:
    """Find the kernels that an optimizer needs.

    Args:
        cls: Its class.
        dtypes: Of the parameters that it is tried with.
        hyper: The hyper-parameters that it is tried with, other than the defaults.

    Raises:
        SamplesMissing: If there is nothing to take steps with.
    """
    return _found(cls, _tried(cls, cls, dtypes, hyper), for_gpus=True)


def _found(cls: type[SteppingOptimizer], makers: Sequence[_Maker], *, for_gpus: bool = False) -> Kernels:
    variants = ProbedVariants(cls.definition)
    probe = optimizer_class(cls, cls.definition, variants)
    with torch.random.fork_rng(devices=()):  # random rounding draws a seed
        for maker, way in itertools.product(makers, _WAYS):
            _take_steps(maker.made(probe, way))
    found = {kind: tuple(of_kind) for kind, of_kind in variants.all() if of_kind}
    return Kernels(found, tuple(variants.for_gpus()) if for_gpus else (), makers)


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes optimizers to try.

    Attributes:
        groups: The groups, with parameters of zeros.
        options: What else the optimizer is made with.
    """

    groups: Sequence[Mapping[str, Any]]
    options: Mapping[str, Any]

    def made(self, cls: type[SteppingOptimizer], way: _Way) -> SteppingOptimizer:
        """An optimizer with gradients of zeros."""
        groups = [{**group, "params": [_like(param) for param in group["params"]]} for group in self.groups]
        for param in (param for group in groups for param in group["params"]):
            param.grad = torch.zeros_like(param, memory_format=torch.preserve_format)
        options = {"max_grad_norm": 1.0} if way.clipped else {"max_grad_norm": None}
        made = cls(groups, **{**self.options, **options, "free_grads": False})
        if way.unscaled:
            made.grad_scale, made.found_inf = torch.ones(()), torch.zeros(())
        return made


def _tried(
    cls: type[SteppingOptimizer],
    given: type[SteppingOptimizer] | SteppingOptimizer,
    dtypes: Sequence[torch.dtype],
    hyper: Mapping[str, Any],
) -> list[_Maker]:
    if isinstance(given, SteppingOptimizer):
        return [_of_optimizer(given)]
    missing = [name for name, value in cls.definition.hyper.items() if value is required and name not in hyper]
    if missing:
        hint = (
            f"give it: in an optimizer, {cls.__name__}(model.parameters(), {missing[0]}=…), or to eject, {missing[0]}=…"
        )
        raise _nothing_known(cls, f"has no default for {missing[0]}", hint)
    makers, refused = [], None
    for dtype, shape in itertools.product(dtypes, USUAL_SHAPES):
        group = {"params": [torch.zeros(shape, dtype=dtype)], **hyper}
        try:
            cls([{**group, "params": list(map(_like, group["params"]))}])
        except ValueError as error:  # such as Muon's, of what is no matrix
            refused = error
            continue
        makers.append(_Maker([group], {}))
    if not makers:
        raise _nothing_known(cls, f"takes no parameter of a usual shape ({refused})", "give an optimizer of your model")
    return makers


def _of_optimizer(given: SteppingOptimizer) -> _Maker:
    names = (*given.definition.hyper, "maximize")
    groups = []
    for group in given.param_groups:
        plain = [param for param in group["params"] if type(param) in PLAIN_TYPES and param.layout is torch.strided]
        params = {(param.shape, param.stride(), param.dtype): _like(param) for param in plain}
        if params:
            groups.append({**{name: group[name] for name in names}, "params": list(params.values())})
    if not groups:
        raise _nothing_known(type(given), "has no parameters that are ordinary tensors", "give its class, or another")
    return _Maker(groups, asdict(given._options))


def _like(param: torch.Tensor) -> torch.Tensor:
    made = torch.zeros_like(param, device="cpu", memory_format=torch.preserve_format)
    return made.detach().requires_grad_()


def _take_steps(optimizer: SteppingOptimizer) -> None:
    """Take steps of these numbers, each of which may go another way through the definition."""
    for step in _STEPS:
        for state in optimizer.state.values():
            state[STEP].fill_(step - 1)
        try:
            optimizer.step()
        except ArithmeticError:  # what Python raises for large numbers, at that step of every optimizer like this
            if step == _STEPS[0]:
                raise
            return


def _refuse_without_text(cls: type[SteppingOptimizer], kind: Kind) -> None:
    for name, value in kind.constants:
        if spell(value) is None:
            raise WheelUnsupported(
                f"{cls.__name__} has a {name} of type {type(value).__name__}, so no wheel can hold it",
                place=place_of(cls.definition.function),
                hint="use numbers, strings, truth values and tuples of them",
            )


def _record(variant: Variant) -> dict[str, Any]:
    facts = {"operands": variant.operands, "numbers": variant.numbers, "one_by_one": variant.one_by_one}
    return {"name": variant.name, **facts}


def record_on_gpu(derived: Derived, name: str) -> dict[str, Any]:
    """What `packaged_optimizers` reads of a kernel in CUDA, under a name."""
    facts = {"operands": derived.operands, "numbers": derived.numbers, "one_by_one": derived.one_by_one}
    return {"name": name, **facts, "launch": f"{name}_{LAUNCH}"}


def _agree(cls: type[SteppingOptimizer], carried: type[SteppingOptimizer], makers: Sequence[_Maker]) -> bool:
    """Whether two classes have the same definition: names, defaults, and results of steps, bit for bit."""
    ours, theirs = cls.definition, carried.definition
    if any(
        getattr(ours, name) != getattr(theirs, name)
        for name in ("states", "hyper", "sparse", "checks_all", "constants", "restarts", "early")
    ):
        return False
    if (ours.check is None) != (theirs.check is None) or ours.starts.keys() != theirs.starts.keys():
        return False
    return all(_same_steps(cls, carried, maker) for maker in makers)


def _same_steps(cls: type[SteppingOptimizer], carried: type[SteppingOptimizer], maker: _Maker) -> bool:
    optimizer = maker.made(cls, _WAYS[0])
    generator = torch.Generator().manual_seed(0)
    for group in optimizer.param_groups:
        params = [_drawn(param, generator) for param in group["params"]]
        results = []
        for each in (cls, carried):
            found, states = params, None
            for step in range(1, _COMPARED_STEPS + 1):
                hyper = {name: group[name] for name in each.definition.hyper}
                found, states = each.functional(found, params, states, float(step), **hyper)
            results.append([*found, *(value for state in states or () for value in state.values())])
        if not all(map(_same, *results)):
            return False
    return True


def _drawn(param: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    drawn = torch.randn(param.shape, generator=generator, dtype=param.dtype)
    return torch.view_as_real(drawn) if drawn.is_complex() else drawn  # as in steps


def _same(first: torch.Tensor, second: torch.Tensor) -> bool:
    return first.dtype == second.dtype and torch.equal(torch.nan_to_num(first), torch.nan_to_num(second))


def _nothing_known(cls: type[SteppingOptimizer], fact: str, hint: str) -> SamplesMissing:
    place = place_of(cls.definition.function)
    return SamplesMissing(f"{cls.__name__} {fact}, so nothing is known of what to build", place=place, hint=hint)
