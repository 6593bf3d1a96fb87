"""Functions of Python's module `math`, which take traced numbers as they take others.

`math.sqrt(n)` asks a number for its value, so that a trace could keep but that value. Here a number that changes gives
another that does: the function of it, which kernels compute (`NUMBER_FUNCTIONS`). Sizes are told their values.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from opwright.tracing.scalars.numbers import NumberTable
from opwright.tracing.scalars.opaque import OF_MATH
from opwright.tracing.torch_hooks.exchanged import Exchanged


@contextmanager
def computing_with_numbers(numbers: NumberTable) -> Iterator[None]:
    """On this thread, let functions of `math` compute with numbers that change."""
    with _exchanged.on_this_thread(numbers):
        yield


def _of_one(name: str) -> Callable[..., Any]:
    plain = getattr(math, name)

    @functools.wraps(plain)
    def computed(*arguments: Any) -> Any:
        numbers = _exchanged.here()
        if numbers is None or len(arguments) != 1 or not _changes(arguments[0], numbers):
            return plain(*arguments)
        from torch.fx.experimental.sym_node import SymNode

        node = arguments[0].node
        value = plain(node.hint)  # raises what the function raises for this call
        expression = OF_MATH[name](node.expr)
        numbers.demand(expression)
        return torch.SymFloat(SymNode(expression, node.shape_env, float, value))

    return computed


def _power() -> Callable[..., Any]:
    plain = math.pow

    @functools.wraps(plain)
    def computed(*arguments: Any) -> Any:
        numbers = _exchanged.here()
        if numbers is None or len(arguments) != 2 or not any(_changes(each, numbers) for each in arguments):
            return plain(*arguments)
        base, exponent = map(torch.sym_float, arguments)
        return base**exponent

    return computed


def _changes(number: Any, numbers: NumberTable) -> bool:
    """Whether it is a traced number that changes from call to call."""
    return type(number) in (torch.SymFloat, torch.SymInt) and not numbers.is_size(number)


_exchanged: Exchanged[NumberTable] = Exchanged(
    {**{(math, name): _of_one(name) for name in OF_MATH}, (math, "pow"): _power()}
)
