"""Follow one axis, or one set of addends, through a Program: how each of its outputs lies."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from typing import assert_never

from opwright.ir import program as ir
from opwright.ir.expressions.integer import Integer, symbol, symbols_of
from opwright.sharding.rules.calls import Called, follow_call
from opwright.sharding.rules.kernels import follow_kernel, follow_view
from opwright.sharding.rules.lies import SAME, Lies, unknown
from opwright.sharding.rules.sizes import Sizes, divided, mentions


def follow(program: ir.Program, inputs: Mapping[str, Lies], axis: str | None, sizes: Sizes) -> tuple[Lies, ...]:
    """How the outputs of a Program lie, one for each; the arguments are those of `follow_all`."""
    lies = follow_all(program, inputs, axis, sizes)
    return tuple(lies[name] for name in program.outputs)


def follow_all(
    program: ir.Program, inputs: Mapping[str, Lies], axis: str | None, sizes: Sizes, mended: Set[str] = frozenset()
) -> dict[str, Lies]:
    """How the buffers of a Program lie.

    Args:
        program: A Program before passes.
        inputs: How each of its inputs lies.
        axis: The symbol of the size of the axis that is spread, in the one spelling; None if none is.
        sizes: The spelling.
        mended: Buffers that are made what the whole computation has as soon as they are computed.

    Returns:
        One for each buffer.
    """
    lies, buffers = dict(inputs), ir.buffers_of(program)
    for step in program.steps:
        match step:
            case ir.Kernel():
                for name, one in follow_kernel(step, buffers, lies, axis, sizes).items():
                    lies[name] = lies[name].joined(one) if name in lies else one
            case ir.View(target=target, source=source):
                lies[target.name] = follow_view(step, buffers[source], lies[source], axis, sizes)
            case ir.Number(target=target, value=value):
                lies[target.name] = _number(value, axis, sizes)
            case ir.Iota(target=target):
                spread = mentions(sizes.spell(target.shape[0]), axis)
                lies[target.name] = unknown("it uses positions along the axis") if spread else SAME
            case ir.Call():
                made = follow_call(Called(step, buffers, lies, axis, sizes))
                lies.update(zip((target.name for target in step.targets), made, strict=True))
            case ir.Check():
                pass  # each process checks its own part
            case _:
                assert_never(step)
        for target in ir.targets_of(step):
            found = _consistent(target, lies[target.name], axis, sizes)
            lies[target.name] = (
                replace(found, kind="same", power=0) if target.name in mended and found.kind != "unknown" else found
            )
    return lies


def _number(value: Integer, axis: str | None, sizes: Sizes) -> Lies:
    size = sizes.spell(value)
    if axis is None or not mentions(size, axis):
        return SAME
    rest = divided(size, symbol(axis))
    if rest is None or axis in symbols_of(rest):
        return unknown("it computes with the size of the axis")
    return Lies(power=1)


def _consistent(buffer: ir.Buffer, lies: Lies, axis: str | None, sizes: Sizes) -> Lies:
    """Refuse a buffer that has the size of the axis where the axis is not."""
    if lies.kind == "unknown":
        return lies
    for dimension, size in enumerate(buffer.shape):
        if mentions(sizes.spell(size), axis) != (lies.at is not None and lies.at.dimension == dimension):
            return unknown(f"{buffer.name} has the size of the axis in a dimension that is not the axis")
    return lies
