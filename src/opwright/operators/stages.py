"""The stages between a reference and its sources, in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch.fx import Node

from opwright.binding.variants.backends import Backend
from opwright.binding.variants.variant import Plan, Saved
from opwright.codegen.cpp.program import emit_program
from opwright.codegen.cuda.program import CudaSource, emit_cuda
from opwright.codegen.formula import formula_comment
from opwright.codegen.header import Origin, built_header
from opwright.derivation.backward import given_to, imitates_eager, static_in
from opwright.derivation.joint import Joint, trace_joint
from opwright.derivation.products import gradients_by_product
from opwright.derivation.rounding import made_of_rounded, rounded_in_registers
from opwright.derivation.saving.budget import Budget
from opwright.derivation.saving.partition import Partition, inputs_behind, inputs_checked, partition
from opwright.derivation.saving.save_policy import SavePolicy
from opwright.ir.expressions.integer import Condition
from opwright.ir.names.fresh import fresh_stem
from opwright.ir.program import Kernel, Program, buffers_of
from opwright.lowering.lay_out import lay_out
from opwright.lowering.lower import lower
from opwright.lowering.pointwise.promotion import program_dtype
from opwright.lowering.size_hints import size_hints
from opwright.operators.left_to_function import gains_nothing
from opwright.operators.names import named_inputs, named_outputs, saved_names
from opwright.operators.orders import (
    NodeOrders,
    argument_orders,
    backward_orders,
    drawn_as_in_eager,
    forward_orders,
    orders_in,
    orders_of_results,
)
from opwright.operators.refusals import refuse_here
from opwright.package import PACKAGE
from opwright.passes.buffers.hand_on import hand_on
from opwright.passes.order import optimize
from opwright.toolchain.source import Source
from opwright.tracing.graph import Graph, value_of
from opwright.tracing.interface.place import function_behind
from opwright.tracing.interface.results import Result
from opwright.tracing.interface.specs import ArgumentSpec, NumberSpec, TensorSpec
from opwright.tracing.outside.ran import is_unknown
from opwright.tracing.recording.values import Digests
from opwright.tracing.result_orders import ResultOrders, rehearse
from opwright.tracing.scalars.guards import NumberGuard
from opwright.tracing.scalars.numbers import NUMBER
from opwright.tracing.trace import trace


@dataclass(frozen=True, slots=True)
class Lowered:
    """A Program before any pass, and the sizes of the trace, by their symbols."""

    program: Program
    met: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Derivation:
    """Everything derived from a reference for one kind of arguments.

    Attributes:
        specs: What the arguments are.
        graph: The traced reference, with its derivative if one was asked for.
        forward: Arguments in, outputs and intermediates out.
        backward: Saved tensors and cotangents in, gradients out; None if none was asked for.
        lowered: Both before any pass.
        plan: The sources, and how to call them.
        origin: The user's function; None for a reference of this package, such as a gradient.
        budget: What came of a budget for what is saved.
        profile: How long each stage took, in seconds.
    """

    specs: tuple[ArgumentSpec, ...]
    graph: Graph
    forward: Program
    backward: Program | None
    lowered: tuple[Lowered, Lowered | None]
    plan: Plan
    origin: Origin | None
    budget: Budget | None = None
    profile: Mapping[str, float] = field(default_factory=dict)

    def cuda_programs(self) -> tuple[Program, Program | None]:
        """The forward and backward Programs for a GPU."""
        forward, backward = self.lowered
        return _optimized(forward, "cuda"), None if backward is None else _optimized(backward, "cuda")

    def cuda_sources(self) -> tuple[CudaSource, ...]:
        """Their CUDA sources: forward, and backward if there is one."""
        return tuple(_cuda(program, self.origin) for program in self.cuda_programs() if program is not None)


class Profile:
    """How long the stages of one derivation take.

    Attributes:
        seconds: By stage, in the order in which they began.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def of(self, stage: str) -> Iterator[None]:
        """Count the time until the end of the block for a stage."""
        begun = time.perf_counter()
        yield
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - begun


def derive(
    reference: Callable[..., Any],
    specs: Sequence[ArgumentSpec],
    name: str,
    save: SavePolicy = "auto",
    backend: Backend = "cpp",
) -> Derivation:
    """Derive kernels: trace, differentiate, choose what to save, lower, optimize, emit.

    Args:
        reference: The function as written.
        specs: One for each parameter; a tensor that requires a gradient gets one.
        name: A C identifier, the name of the kernels.
        save: What the backward pass may keep.
        backend: The language of the kernels.

    Raises:
        UntraceableReference: If control flow or a shape depends on data.
        NoKernel: If it does something that kernels cannot do.
    """
    origin, specs = _origin(reference), tuple(_spec_in(reference, spec) for spec in specs)
    timed = Profile()
    derived = _derived(reference, specs, name, save, backend, origin, timed)
    plan = replace(derived.plan, is_like_eager=imitates_eager(reference))
    return replace(derived, plan=plan, profile=timed.seconds)


def _derived(
    reference: Callable[..., Any],
    specs: tuple[ArgumentSpec, ...],
    name: str,
    save: SavePolicy,
    backend: Backend,
    origin: Origin | None,
    timed: Profile,
) -> Derivation:
    if is_unknown(reference):
        with timed.of("trace"):
            rehearse(reference, specs)
    if any(isinstance(spec, TensorSpec) and spec.requires_grad for spec in specs):
        with timed.of("trace"):
            joint = trace_joint(reference, specs)
        if any(gradient is not None for gradient in joint.gradients):
            unchanged = static_in(reference) if imitates_eager(reference) else None
            with timed.of("lay out"):
                results = orders_of_results(reference, specs, joint.graph, joint.gradients)
                joint = replace(joint, graph=drawn_as_in_eager(joint.graph, results))
            return _derive_with_gradients(joint, specs, name, save, backend, origin, unchanged, results, timed)
    with timed.of("trace"):
        graph, result = trace(reference, specs)
    refuse_here(graph, specs)
    with timed.of("lay out"):
        arguments, results = argument_orders(graph, specs), orders_of_results(reference, specs, graph)
        graph = drawn_as_in_eager(graph, results)
        orders = arguments, forward_orders(graph, arguments, results, ())
    ends = named_inputs(graph), named_outputs(graph)
    with timed.of("lower"):
        lowered = _lowered(graph, f"{name}_forward", *ends, graph.guards, orders=orders)
    with timed.of("optimize"):
        forward = _optimized(lowered, backend)
    with timed.of("emit"):
        plan = _plan(graph, specs, result, _source(forward, backend, origin))
    plan = replace(plan, kernels=_kernels(forward), left_to_function=gains_nothing(graph, origin, forward))
    return Derivation(specs, graph, forward, None, (lowered, None), plan, origin)


def _spec_in(reference: Callable[..., Any], spec: ArgumentSpec) -> ArgumentSpec:
    if not isinstance(spec, TensorSpec):
        return spec
    digest = given_to(reference).get(spec.name, spec.digest)
    return replace(spec, digest=digest, is_static=spec.name in static_in(reference))


def _derive_with_gradients(
    joint: Joint,
    specs: tuple[ArgumentSpec, ...],
    name: str,
    save: SavePolicy,
    backend: Backend,
    origin: Origin | None,
    unchanged: Set[str] | None,
    lie: ResultOrders,
    timed: Profile,
) -> Derivation:
    graph = joint.graph
    refuse_here(graph, specs)
    policy = 0 if graph.is_random and save == "inputs" else save  # no number can be drawn again
    with timed.of("choose what to save"):
        kept = partition(joint, policy, unchanged)
    tangents = [node for node in joint.tangents if node is not None]
    arguments = [(given, node) for given, node in named_inputs(graph) if node not in tangents]
    names = {node: given for given, node in named_inputs(graph)}
    saved = fresh_stem("saved", names.values(), "saved_")
    intermediates = saved_names(graph, kept.intermediates, saved)
    results = [*named_outputs(graph), *intermediates]
    little = {given for given, node in intermediates if node in kept.little}
    with timed.of("lay out"):
        given = argument_orders(graph, specs)
        made = forward_orders(graph, given, lie, kept.intermediates)
        cotangents, found = backward_orders(joint, lie)
    how: dict[str, Any] = {"unrounded": little, "saved": kept.rounded, "orders": (given, made)}
    with timed.of("lower"):
        lowered = _lowered(graph, f"{name}_forward", arguments, results, graph.guards, **how)
        unrounded = little & _unrounded(lowered.program, results)
        gradients = [(position, node) for position, node in enumerate(joint.gradients) if node is not None]
        lowered_backward = _lowered(
            graph,
            f"{name}_backward",
            [(names[node], node) for node in kept.inputs]
            + [(f"{saved}_output_{graph.outputs.index(node)}", node) for node in kept.outputs]
            + intermediates
            + [(names[node], node) for node in tangents],
            [(f"grad_{specs[position].name}", node) for position, node in gradients],
            effects=False,
            unrounded=unrounded,
            saved=kept.rounded,
            orders=({**given, **made, **cotangents}, found),
            cotangents={names[node] for node in tangents},
        )
    with timed.of("optimize"):
        forward, backward = _optimized(lowered, backend), _optimized(lowered_backward, backend)
    with timed.of("emit"):
        sources = _source(forward, backend, origin), _source(backward, backend, origin)
    positions = {spec.name: position for position, spec in enumerate(specs)}
    plan = replace(
        _plan(graph, specs, joint.result, sources[0]),
        backward=sources[1],
        tangents=tuple(position for position, node in enumerate(joint.tangents) if node is not None),
        gradients=tuple(position for position, _ in gradients),
        reach=joint.reach,
        freed=joint.freed,
        feeding=joint.feeding,
        saved=_saved(joint, kept, backward, positions, [given in unrounded for given, _ in intermediates]),
        products=() if graph.is_random else gradients_by_product(joint, kept),
        kernels=_kernels(forward, backward),
        left_to_function=gains_nothing(graph, origin, forward, backward),
    )
    return Derivation(specs, graph, forward, backward, (lowered, lowered_backward), plan, origin, kept.budget)


def _plan(graph: Graph, specs: Sequence[ArgumentSpec], result: Result, forward: Source) -> Plan:
    """What a variant without a backward kernel consists of."""
    return Plan(
        forward=forward,
        backward=None,
        outputs=len(graph.outputs),
        result=result,
        tensors=_positions(specs, TensorSpec | NumberSpec),
        numbers=_positions(specs, NumberSpec),
        integers=_integers(specs),
        number_guards=_number_guards(graph, specs),
        tangents=(),
        gradients=(),
        saved=Saved((), 0, (), ()),
        is_random=graph.is_random,
        orders=orders_in(specs),
        needs_row_major=graph.needs_row_major,
        needs_whole_memory=graph.needs_whole_memory,
        asks_for_identity=graph.asks_for_identity,
        records_unasked=graph.records_unasked,
    )


def _kernels(*programs: Program) -> tuple[int, ...]:
    return tuple(sum(isinstance(step, Kernel) for step in program.steps) for program in programs)


def _lowered(
    graph: Graph,
    name: str,
    inputs: Sequence[tuple[str, Node]],
    outputs: Sequence[tuple[str, Node]],
    guards: Sequence[Condition] = (),
    *,
    effects: bool = True,
    unrounded: Set[str] = frozenset(),
    saved: Sequence[Node] = (),
    orders: tuple[NodeOrders, NodeOrders],
    cotangents: Set[str] = frozenset(),
) -> Lowered:
    rounded = rounded_in_registers(graph, saved)
    given, made = orders
    how: dict[str, Any] = {"effects": effects, "unrounded": unrounded, "rounded": rounded, "orders": {**given, **made}}
    program = lower(graph, name, inputs, outputs, guards, **how)
    program = hand_on(program, cotangents) if cotangents else program
    program = lay_out(program, [given[node] for _, node in inputs], [made[node] for _, node in outputs])
    return Lowered(program, size_hints(graph, inputs))


def _unrounded(program: Program, results: Sequence[tuple[str, Node]]) -> frozenset[str]:
    """The results that a Program returns in float32 although torch's are of a half type."""
    buffers = buffers_of(program)
    given = zip(program.outputs, results, strict=True)
    return frozenset(m for output, (m, n) in given if buffers[output].dtype is not program_dtype(value_of(n).dtype))


def _optimized(lowered: Lowered, backend: Backend) -> Program:
    return optimize(lowered.program, backend, lowered.met)


def _saved(joint: Joint, kept: Partition, backward: Program, positions: dict[str, int], wide: Sequence[bool]) -> Saved:
    names = {given.node: given.name for given in joint.graph.inputs}
    behind = {positions[names[node]] for node in inputs_behind(joint)} | {positions[names[n]] for n in kept.inputs}
    behind |= {positions[guard.name] for guard in joint.graph.number_guards}  # which the trace depends on
    read_again = inputs_checked(joint)
    behind |= {positions[names[node]] for node in read_again if NUMBER in node.meta}
    checked = {positions[names[node]] for node in read_again} - behind
    digests, once = Digests(), made_of_rounded(joint.graph, kept.rounded)
    return Saved(
        arguments=tuple(positions[names[node]] for node in kept.inputs),
        intermediates=len(kept.intermediates),
        sizes=tuple(_argument_size(size, positions) for size in backward.sizes),
        contributing=tuple(sorted(behind | checked)),
        outputs=tuple(joint.graph.outputs.index(node) for node in kept.outputs),
        # map() would end at a StopIteration; an unrounded value differs from what the same operations give.
        digests=tuple(["" if w or n in once else digests.of(n) for n, w in zip(kept.intermediates, wide, strict=True)]),
        checked=tuple(sorted(checked)),
    )


def _argument_size(symbol: str, positions: dict[str, int]) -> tuple[int, int]:
    """The argument and dimension of a symbol such as `gates_size_1`."""
    name, _, dimension = symbol.rpartition("_size_")
    return positions[name], int(dimension)


def _positions(specs: Sequence[ArgumentSpec], kind: Any) -> tuple[int, ...]:
    return tuple(position for position, spec in enumerate(specs) if isinstance(spec, kind))


def _integers(specs: Sequence[ArgumentSpec]) -> tuple[int, ...]:
    numbers = ((position, spec) for position, spec in enumerate(specs) if isinstance(spec, NumberSpec))
    return tuple(position for position, spec in numbers if isinstance(spec.value, int))


def _number_guards(graph: Graph, specs: Sequence[ArgumentSpec]) -> tuple[tuple[int, NumberGuard], ...]:
    positions = {spec.name: position for position, spec in enumerate(specs)}
    return tuple((positions[guard.name], guard) for guard in graph.number_guards)


def _origin(reference: Callable[..., Any]) -> Origin | None:
    function = function_behind(reference)
    if function is None or (file := Path(function.__code__.co_filename)).is_relative_to(PACKAGE):
        return None
    return Origin(function.__qualname__, file.name)


def _source(program: Program, backend: Backend, origin: Origin | None) -> Source:
    if backend == "cuda":
        written = _cuda(program, origin)
        return Source(written.name, written.host, written.device)
    emitted = emit_program(program, formula_comment, built_header(program.name, origin, "cpp"))
    return Source(emitted.name, emitted.text)


def _cuda(program: Program, origin: Origin | None) -> CudaSource:
    return emit_cuda(program, formula_comment, built_header(program.name, origin, "cuda"))
