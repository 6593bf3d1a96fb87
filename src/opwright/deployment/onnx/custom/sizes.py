"""The arguments of a call where sizes that may change are one: kernels for these are others, because they broadcast."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.fx import Node

from opwright.deployment.programs.exported import OperatorCall

_MOST_SYMBOLS = 3  # beyond it, one at a time and all together


def with_sizes_of_one(call: OperatorCall) -> Iterator[tuple[Any, ...]]:
    """Arguments for each choice of the sizes that may change; the values of their tensors mean nothing."""
    written = call.signature.bind(tuple(call.node.args), dict(call.node.kwargs))
    shapes = [tuple(each.meta["val"].shape) if isinstance(each, Node) else () for each in written]
    met = _met(call, shapes)
    for chosen in _subsets(list(met)):
        sizes = {**met, **dict.fromkeys(chosen, 1)}
        yield tuple(
            torch.zeros([_value(size, sizes) for size in shape], dtype=value.dtype)
            if isinstance(value, torch.Tensor)
            else value
            for value, shape in zip(call.arguments, shapes, strict=True)
        )


def _met(call: OperatorCall, shapes: list[tuple[Any, ...]]) -> dict[Any, int]:
    """The symbols that are a size by themselves, with their sizes in the example."""
    found: dict[Any, int] = {}
    for value, shape in zip(call.arguments, shapes, strict=True):
        for place, size in enumerate(shape):
            if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                found[size.node.expr] = value.shape[place]
    return {symbol: size for symbol, size in found.items() if size != 1}


def _value(size: Any, sizes: Mapping[Any, int]) -> int:
    if isinstance(size, int):
        return size
    value = size.node.expr.subs(sizes)
    return max(int(value), 0) if value.is_number else size.node.hint


def _subsets(symbols: list[Any]) -> Iterator[tuple[Any, ...]]:
    counts = range(1, len(symbols) + 1) if len(symbols) <= _MOST_SYMBOLS else sorted({1, len(symbols)})
    for count in counts:
        yield from itertools.combinations(symbols, count)
