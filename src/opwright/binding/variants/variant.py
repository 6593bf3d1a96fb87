"""A variant: the kernels of one operator for one dtype, rank and broadcast pattern.

plan    = what lowering decided, as plain data: it can be written down and found again in another process
variant = the plan with its libraries loaded
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from opwright.binding.rungs import RungName
from opwright.binding.variants.launcher import Launcher, load_launcher
from opwright.binding.variants.record_types import as_tuples, has_declared_types
from opwright.toolchain.source import Source
from opwright.toolchain.storage.records import canonical_json
from opwright.tracing.interface.results import Result
from opwright.tracing.scalars.guards import NumberGuard

SavePolicy = Literal["auto", "inputs", "all"]
Differentiate = Callable[[Sequence[Any], Sequence[Any], "Plan"], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Saved:
    """What the forward pass keeps for the backward pass.

    Attributes:
        arguments: Positions of tensor arguments that the backward kernel reads, in its order.
        intermediates: How many values the forward kernel gives out after its outputs.
        outputs: Positions of outputs that the backward kernel reads, between the arguments and the intermediates.
        sizes: Sizes that the backward kernel is given as numbers: (argument, dimension).
        contributing: Positions of tensor arguments whose values the gradients depend on.
        digests: What each intermediate is the value of; empty where the same operation may give another.
    """

    arguments: tuple[int, ...]
    intermediates: int
    sizes: tuple[tuple[int, int], ...]
    contributing: tuple[int, ...]
    outputs: tuple[int, ...] = ()
    digests: tuple[str, ...] = ()

    @property
    def known(self) -> tuple[str, ...]:
        """Digests of the intermediates that a backward pass is given when it is differentiated."""
        return tuple(digest for digest in self.digests if digest)

    def given(self, intermediates: Sequence[Any]) -> list[Any]:
        """Those intermediates."""
        return [value for value, digest in zip(intermediates, self.digests, strict=True) if digest]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a variant consists of.

    Attributes:
        forward: The source of the forward pass.
        backward: The source of the backward pass; None when no gradient was asked for.
        outputs: How many tensors the forward pass computes to be returned.
        result: The structure they are returned in.
        tensors: Positions of the arguments that are tensors.
        numbers: Positions of those that stand for Python numbers.
        integers: Positions of those that stand for Python ints.
        number_guards: For which values of these it is valid, by position.
        tangents: Positions of the outputs that have an cotangent.
        gradients: For each result of the backward kernel, the position of the argument it belongs to.
        saved: What crosses to the backward pass.
        products: For each product or convolution of the backward pass, the gradients that it is computed for.
        is_random: Whether it draws random numbers.
        needs_row_major: Whether it serves only arguments that lie row by row.
        needs_whole_memory: Whether it serves only arguments that are all there is in their memory.
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
    products: tuple[tuple[int, ...], ...] = ()
    is_random: bool = False
    needs_row_major: bool = False
    needs_whole_memory: bool = False

    @property
    def sources(self) -> tuple[Source, ...]:
        """What has to be built."""
        return (self.forward,) if self.backward is None else (self.forward, self.backward)

    @property
    def spared(self) -> tuple[tuple[int, ...], ...]:
        """Sets of gradients: where none of one is asked for, the operator of the others does with fewer products.

        Empty if that operator would compute again what was kept, for it is given no outputs.
        """
        return () if self.saved.outputs or not all(self.saved.digests) else self.products

    def narrowed(self, wanted: Sequence[int]) -> Plan:
        """The same with only these gradients, if that spares a product; else this one."""
        if all(not needing.isdisjoint(wanted) for needing in map(set, self.spared)):
            return self
        return replace(self, gradients=tuple(wanted))

    def to_record(self) -> dict[str, Any] | None:
        """Plain data for the record store; None if there is a class of the user's in the result."""
        result = self.result.to_record()
        plain = asdict(replace(self, result=None))  # type: ignore[arg-type]  # which writes itself down
        return result and plain | {"result": result}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Plan:
        """The inverse of `to_record`, also after a passage through JSON.

        Raises:
            TypeError, KeyError: If it is no record of a plan.
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
            raise TypeError("a record of a plan holds something else than a plan does")
        return plan


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """A plan with its kernels loaded, and what the hot path would otherwise ask of the plan at every call.

    Attributes:
        plan: What was decided.
        differentiate: `(arguments, cotangents and intermediates, plan) -> gradients`, differentiable in the
            arguments and in the cotangents.
        forward: Tensors in, outputs and intermediates out.
        backward: Saved tensors, cotangents and sizes in, gradients out.
        only_tensors: Whether every argument is a tensor, and no values are to be asked for.
        bare: Whether the operator returns one tensor that it computes.
        plain: Whether it returns what `forward` gives first, as it is.
        forward_single: Whether `forward` returns one bare tensor.
        backward_single: Whether `backward` does.
        keeps_all_arguments: Whether all arguments are tensors and all are saved, in order.
        backward_reads: Positions, in what is saved, of what `backward` takes; None if it takes all of it.
        wants_all_gradients: Whether every argument gets a gradient.
        all_outputs_differentiable: Whether every output has an cotangent.
        kept_results: Positions of what `forward` gives that is kept for `backward`.
        is_random: Whether it draws random numbers.
        needs_row_major: Whether it takes only tensors that lie row by row.
        rung: What its kernels are written in.
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


def load_variant(plan: Plan, libraries: Sequence[Path], arity: int, differentiate: Differentiate) -> Variant:
    """Load the built libraries of a plan."""
    kernels = [load_launcher(path, source.name) for path, source in zip(libraries, plan.sources, strict=True)]
    every = tuple(range(arity))
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
    )


def _read_by_backward(saved: Saved) -> tuple[int, ...] | None:
    kept = len(saved.contributing) + len(saved.outputs) + saved.intermediates
    arguments = [saved.contributing.index(position) for position in saved.arguments]
    read = (*arguments, *range(len(saved.contributing), kept))
    return None if read == tuple(range(kept)) else read
