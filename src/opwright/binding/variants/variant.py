"""A variant: the kernels of one operator for one dtype, rank and broadcast pattern.

plan    = the result of derivation as plain data, which can be recorded and loaded in another process
variant = the plan with its libraries loaded
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from opwright.binding.rungs import RungName
from opwright.binding.variants.launcher import Launcher, load_launcher
from opwright.binding.variants.record_types import as_tuples, has_declared_types
from opwright.toolchain.source import Source
from opwright.toolchain.storage.records import canonical_json
from opwright.tracing.interface.memory import laid_row_by_row
from opwright.tracing.interface.orders import Orders
from opwright.tracing.interface.results import Result
from opwright.tracing.scalars.guards import NumberGuard


class Differentiate(Protocol):
    """Differentiates the calls of an operator."""

    def __call__(self, arguments: Sequence[Any], values: Sequence[Any], plan: Plan, /) -> Sequence[Any]:
        """The gradients of a plan, of arguments, then cotangents and intermediates."""

    def cut(
        self,
        arguments: Sequence[Any],
        cotangents: Mapping[int, Any],
        plan: Plan,
        at: Sequence[int],
        wanted: Sequence[int],
        cut: Callable[..., Any],
        /,
    ) -> Sequence[Any]:
        """The gradients of wanted arguments, or of outputs, where the flow from others is cut."""

    def runs_of(self, plan: Plan, /) -> Any:
        """The tape in C++ of the operator of a plan's gradients; None if there is none."""


@dataclass(frozen=True, slots=True)
class Saved:
    """What the forward pass saves for the backward pass.

    Attributes:
        arguments: Positions of tensor arguments that the backward kernel reads, in its order.
        intermediates: How many values the forward kernel returns after its outputs.
        outputs: Positions of outputs that the backward kernel reads, between the arguments and the intermediates.
        sizes: Sizes that the backward kernel takes as numbers: (argument, dimension).
        contributing: Positions of tensor arguments whose values the gradients depend on, and of `checked`.
        digests: The digest of each intermediate; empty if its operation is not repeatable.
        checked: Those of `contributing` that a gradient depends on only where it is differentiated again: the function
            runs once more then, and checks them. They may be changed in place before.
    """

    arguments: tuple[int, ...]
    intermediates: int
    sizes: tuple[tuple[int, int], ...]
    contributing: tuple[int, ...]
    outputs: tuple[int, ...] = ()
    digests: tuple[str, ...] = ()
    checked: tuple[int, ...] = ()

    @property
    def known(self) -> tuple[str, ...]:
        """Digests of the intermediates that a differentiable backward pass takes."""
        return tuple(digest for digest in self.digests if digest)

    def given(self, intermediates: Sequence[Any]) -> list[Any]:
        """Those intermediates."""
        return [value for value, digest in zip(intermediates, self.digests, strict=True) if digest]


@dataclass(frozen=True, slots=True)
class Plan:
    """The description of a variant.

    Attributes:
        forward: The source of the forward pass.
        backward: The source of the backward pass; None if no gradient was asked for.
        outputs: How many tensors the forward pass computes to be returned.
        result: The structure of the result.
        tensors: Positions of the arguments that are tensors.
        numbers: Positions of those that stand for Python numbers.
        integers: Positions of those that stand for Python ints.
        number_guards: The guards of these numbers, by position.
        tangents: Positions of the outputs that have a cotangent.
        gradients: For each result of the backward kernel, the position of the argument it belongs to.
        saved: What is saved for the backward pass.
        reach: For each of `tangents`, the positions of the arguments to which a gradient flows from it.
        freed: For each of `tangents`, the positions among them of those whose backward pass frees what its own needs
            in eager; () if each frees everything.
        feeding: For each of `tangents`, the positions among them of the outputs that its own is computed from, to which
            a gradient flows through them; () if no output is computed from another one, as is usual.
        products: For each product or convolution of the backward pass, the gradients that need it.
        kernels: How many kernels of ours run forward, and backward.
        left_to_function: Whether kernels gain nothing over the function itself, which serves unless a rung is pinned.
        is_like_eager: Whether code around it may change arguments in place that eager does not save.
        is_random: Whether it draws random numbers.
        orders: The orders of the tensors that it serves, by position; () for tensors that lie as written.
        needs_row_major: Whether it serves only contiguous arguments.
        needs_whole_memory: Whether it serves only arguments that fill their storage.
        asks_for_identity: Whether it serves only calls in which no tensor is given twice.
        records_unasked: Whether it serves only calls in which no tensor requires a gradient: the function switches
            gradients on for what it returns.
    """

    forward: Source
    backward: Source | None
    outputs: int
    result: Result
    tensors: tuple[int, ...]
    numbers: tuple[int, ...]
    integers: tuple[int, ...]
    number_guards: tuple[tuple[int, NumberGuard], ...]
    tangents: tuple[int, ...]
    gradients: tuple[int, ...]
    saved: Saved
    reach: tuple[tuple[int, ...], ...] = ()
    freed: tuple[tuple[int, ...], ...] = ()
    feeding: tuple[tuple[int, ...], ...] = ()
    products: tuple[tuple[int, ...], ...] = ()
    kernels: tuple[int, ...] = ()
    left_to_function: bool = False
    is_like_eager: bool = False
    is_random: bool = False
    orders: Orders = ()
    needs_row_major: bool = False
    needs_whole_memory: bool = False
    asks_for_identity: bool = False
    records_unasked: bool = False

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources to build."""
        return (self.forward,) if self.backward is None else (self.forward, self.backward)

    @property
    def spared(self) -> tuple[tuple[int, ...], ...]:
        """Sets of gradients: if none of a set is needed, the operator of the other gradients needs fewer products.

        Empty if that operator would recompute saved outputs, which it does not get.
        """
        return () if self.saved.outputs or not all(self.saved.digests) else self.products

    def narrowed(self, wanted: Sequence[int]) -> Plan:
        """The plan with only these gradients, if that saves a product; else this one."""
        if all(not needing.isdisjoint(wanted) for needing in map(set, self.spared)):
            return self
        return replace(self, gradients=tuple(wanted))

    def of_outputs(self, used: Sequence[int]) -> Plan:
        """The plan of the backward pass of some outputs, with the gradients that flow from them.

        A zero in place of the cotangent of an unused output would not do: times an infinite derivative, it is NaN.
        """
        reached = {
            position
            for output, reach in zip(self.tangents, self.reach, strict=True)
            if output in used
            for position in reach
        }
        gradients = tuple(position for position in self.gradients if position in reached)
        return replace(self, tangents=tuple(used), gradients=gradients)

    def laid_out(self, values: Sequence[Any]) -> Sequence[Any]:
        """What the operator of the gradients takes: as this one does, perhaps only tensors that lie row by row.

        Stand-ins for arguments are expanded, and so may cotangents be.
        """
        return laid_row_by_row(values, whole_memory=self.needs_whole_memory) if self.needs_row_major else values

    def to_record(self) -> dict[str, Any] | None:
        """Plain data for the record store; None if the result contains a user's class."""
        result = self.result.to_record()
        plain = asdict(replace(self, result=None))  # type: ignore[arg-type]  # which writes itself down
        return result and plain | {"result": result}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Plan:
        """The inverse of `to_record`, also from JSON.

        Raises:
            TypeError, KeyError: If it is not a record of a plan.
        """
        values = as_tuples(record)
        backward, guards = values["backward"], values["number_guards"]
        read = {
            "forward": Source(**values["forward"]),
            "backward": Source(**backward) if backward else None,
            "result": Result.from_record(record["result"]),
            "number_guards": tuple((position, NumberGuard(**guard)) for position, guard in guards),
            "saved": Saved(**values["saved"]),
        }
        plan = cls(**values | read)
        if not has_declared_types(plan, cls) or canonical_json(plan.to_record()) != canonical_json(record):
            raise TypeError("a record of a plan has other contents than a plan")
        return plan


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """A plan with its kernels loaded, and attributes that the hot path needs at every call.

    Attributes:
        plan: What was decided.
        differentiate: Gives gradients that are differentiable in the arguments and in the cotangents.
        forward: Tensors in, outputs and intermediates out.
        backward: Saved tensors, cotangents and sizes in, gradients out.
        only_tensors: Whether every argument is a tensor, so that there are no constants to compare.
        bare: Whether the operator returns one tensor that it computes.
        plain: Whether it returns the first results of `forward` unchanged.
        forward_single: Whether `forward` returns one bare tensor.
        backward_single: Whether `backward` does.
        keeps_all_arguments: Whether all arguments are tensors and all are saved, in order.
        backward_reads: Positions of what `backward` takes, among what is saved; None if it takes everything.
        wants_all_gradients: Whether every argument gets a gradient.
        all_outputs_differentiable: Whether every output has a cotangent.
        kept_results: Positions of the results of `forward` that are saved for `backward`.
        is_random: Whether it draws random numbers.
        needs_row_major: Whether it takes only contiguous tensors.
        rung: The backend of its kernels.
        constants: Values of the arguments that are no tensors, by position.
    """

    plan: Plan
    differentiate: Differentiate
    forward: Launcher
    backward: Launcher | None
    only_tensors: bool
    bare: bool
    plain: bool
    forward_single: bool
    backward_single: bool
    keeps_all_arguments: bool
    backward_reads: tuple[int, ...] | None
    wants_all_gradients: bool
    all_outputs_differentiable: bool
    kept_results: tuple[int, ...]
    is_random: bool
    needs_row_major: bool
    rung: RungName
    constants: Mapping[int, Any]


def load_variant(
    plan: Plan, libraries: Sequence[Path], arguments: Sequence[Any], differentiate: Differentiate
) -> Variant:
    """Load the built libraries of a plan, which was made for arguments like these."""
    kernels = [load_launcher(path, source.name) for path, source in zip(libraries, plan.sources, strict=True)]
    every = tuple(range(len(arguments)))
    return Variant(
        plan=plan,
        differentiate=differentiate,
        forward=kernels[0],
        backward=kernels[1] if plan.backward else None,
        only_tensors=plan.tensors == every and not plan.number_guards,
        bare=plan.result.is_bare,
        plain=plan.result.is_plain,
        forward_single=plan.outputs + plan.saved.intermediates == 1,
        backward_single=len(plan.gradients) == 1,
        keeps_all_arguments=plan.saved.contributing == every,
        backward_reads=_read_by_backward(plan.saved),
        wants_all_gradients=plan.gradients == every,
        all_outputs_differentiable=len(plan.tangents) == plan.outputs,
        kept_results=(*plan.saved.outputs, *range(plan.outputs, plan.outputs + plan.saved.intermediates)),
        is_random=plan.is_random,
        needs_row_major=plan.needs_row_major,
        rung="cpp" if plan.forward.device is None else "cuda",
        constants={position: value for position, value in enumerate(arguments) if position not in plan.tensors},
    )


def _read_by_backward(saved: Saved) -> tuple[int, ...] | None:
    kept = len(saved.contributing) + len(saved.outputs) + saved.intermediates
    arguments = [saved.contributing.index(position) for position in saved.arguments]
    read = (*arguments, *range(len(saved.contributing), kept))
    return None if read == tuple(range(kept)) else read
