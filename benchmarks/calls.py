"""What a call costs on 8 elements, for every kind of argument and result, against the same work on bare tensors.

python benchmarks/calls.py [--json FILE]

Each family is timed in turns with eager and with the bare operator: one that takes as many tensors, by position, and
gives as many, in a tuple if there are several.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from scorecard import Options, Row, Scorecard, Target, medians_us, run_script

import opwright
from opwright.benchmark.stopwatch import Thunk

MOST_OF_BARE = 1.5
MOST_OF_EAGER = 1.0
Call = Callable[[Callable[..., Any], Sequence[torch.Tensor]], Any]


class Pair(NamedTuple):
    """Two tensors."""

    x: torch.Tensor
    y: torch.Tensor


@opwright.operator
def bare(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Take two tensors."""
    return torch.tanh(x) * y


@opwright.operator
def bare_of_three(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """Take three tensors."""
    return torch.tanh(x) * y + z


@opwright.operator
def bare_pair(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Give two tensors."""
    return torch.tanh(x) * y, x + y


@opwright.operator
def with_float(x: torch.Tensor, y: torch.Tensor, scale: float = 0.5) -> torch.Tensor:
    """Take a float."""
    return torch.tanh(x * scale) * y


@opwright.operator
def with_changing(x: torch.Tensor, y: torch.Tensor, scale: float = 0.5) -> torch.Tensor:
    """Take a float that changes."""
    return torch.tanh(x * scale) * y


@opwright.operator
def with_int(x: torch.Tensor, y: torch.Tensor, factor: int = 2) -> torch.Tensor:
    """Take an int."""
    return torch.tanh(x * factor) * y


@opwright.operator
def with_bool(x: torch.Tensor, y: torch.Tensor, gated: bool = True) -> torch.Tensor:
    """Take a flag."""
    return torch.tanh(x) * y if gated else torch.tanh(x) + y


@opwright.operator
def with_str(x: torch.Tensor, y: torch.Tensor, activation: str = "tanh") -> torch.Tensor:
    """Take a string."""
    return (torch.tanh(x) if activation == "tanh" else torch.relu(x)) * y


@opwright.operator
def with_none(x: torch.Tensor, y: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """Take a tensor or None."""
    return torch.tanh(x) * y if bias is None else torch.tanh(x) * y + bias


@opwright.operator
def with_mask(x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Take a mask."""
    return torch.where(mask, torch.tanh(x), y)


@opwright.operator
def with_index(x: torch.Tensor, y: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Take an index."""
    return torch.tanh(x[index]) * y


@opwright.operator
def of_list(pair: list[torch.Tensor]) -> torch.Tensor:
    """Take a list."""
    return torch.tanh(pair[0]) * pair[1]


@opwright.operator
def of_tuple(pair: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Take a tuple."""
    return torch.tanh(pair[0]) * pair[1]


@opwright.operator
def of_dict(pair: dict[str, torch.Tensor]) -> torch.Tensor:
    """Take a dict."""
    return torch.tanh(pair["x"]) * pair["y"]


@opwright.operator
def of_named_tuple(pair: Pair) -> torch.Tensor:
    """Take a named tuple."""
    return torch.tanh(pair.x) * pair.y


@opwright.operator
def to_dict(x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
    """Give a dict."""
    return {"product": torch.tanh(x) * y, "sum": x + y}


@opwright.operator
def to_named_tuple(x: torch.Tensor, y: torch.Tensor) -> Pair:
    """Give a named tuple."""
    return Pair(torch.tanh(x) * y, x + y)


@opwright.operator(mutates=["x"])
def mutating(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Change its first argument."""
    return x.mul_(0.9).add_(torch.tanh(y))


@opwright.operator
def random(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Drop half of the numbers."""
    return torch.nn.functional.dropout(torch.tanh(x), 0.5) * y


@dataclass(frozen=True, slots=True)
class Family:
    """One way of calling.

    Attributes:
        name: What is special about it.
        operator: What is called.
        call: How: `(function, tensors) -> result`.
        bare: The operator that it is compared with.
        besides: A tensor that no gradient is asked for.
    """

    name: str
    operator: Any
    call: Call
    bare: Any = bare
    besides: torch.Tensor | None = None


def _plainly(function: Callable[..., Any], tensors: Sequence[torch.Tensor]) -> Any:
    return function(*tensors)


_values = itertools.cycle([0.25, 0.5, 0.75, 1.25])

FAMILIES = (
    Family("a float, its default", with_float, _plainly),
    Family("a float by position", with_float, lambda f, t: f(t[0], t[1], 0.5)),
    Family("a float by keyword", with_float, lambda f, t: f(t[0], t[1], scale=0.5)),
    Family("a float that changes", with_changing, lambda f, t: f(t[0], t[1], next(_values))),
    Family("an int", with_int, lambda f, t: f(t[0], t[1], 3)),
    Family("a flag", with_bool, lambda f, t: f(t[0], t[1], gated=False)),
    Family("a string", with_str, lambda f, t: f(t[0], t[1], activation="relu")),
    Family("None, its default", with_none, _plainly),
    Family("a mask", with_mask, _plainly, bare_of_three, torch.tensor([True, False] * 4)),
    Family("an index", with_index, _plainly, bare_of_three, torch.arange(8).flip(0)),
    Family("tensors by keyword", bare, lambda f, t: f(x=t[0], y=t[1])),
    Family("a list", of_list, lambda f, t: f([t[0], t[1]])),
    Family("a tuple", of_tuple, lambda f, t: f((t[0], t[1]))),
    Family("a dict", of_dict, lambda f, t: f({"x": t[0], "y": t[1]})),
    Family("a named tuple", of_named_tuple, lambda f, t: f(Pair(t[0], t[1]))),
    Family("gives a tuple", bare_pair, _plainly, bare_pair),
    Family("gives a dict", to_dict, _plainly, bare_pair),
    Family("gives a named tuple", to_named_tuple, _plainly, bare_pair),
    Family("changes an argument", mutating, _plainly),
    Family("draws random numbers", random, _plainly),
)


def measure(options: Options) -> Sequence[Scorecard]:
    """Time every family without gradients, recording, and with its backward pass."""
    return [
        _card("forward, no gradients", _forward(requires_grad=False), options),
        _card("forward, recording", _forward(requires_grad=True), options),
        _card("forward + backward", _training, options),
    ]


Prepare = Callable[[Callable[..., Any], Call, Family], Thunk]


def _card(title: str, prepare: Prepare, options: Options) -> Scorecard:
    rows = [_row(family, prepare, options) for family in FAMILIES]
    targets = [_dearest(rows, "/ bare", MOST_OF_BARE)]
    if prepare is not _training:
        targets.append(_dearest(rows, "/ eager", MOST_OF_EAGER))
    return Scorecard(f"{title}, 8 elements; µs", rows, targets)


def _dearest(rows: Sequence[Row], quotient: str, most: float) -> Target:
    name, worst = max(((row.name, row.figures[quotient] or 0) for row in rows), key=lambda found: found[1])
    return Target(f"the dearest, {name}: {quotient}", worst, "<=", most)


def _row(family: Family, prepare: Prepare, options: Options) -> Row:
    ways = {
        "opwright": prepare(family.operator, family.call, family),
        "bare": prepare(family.bare, _plainly, family),
        "eager": prepare(family.operator.reference, family.call, family),
    }
    for _ in range(5):  # of every value that changes
        ways["opwright"]()
    assert family.operator.last_rung == "cpp", f"{family.name} is served by {family.operator.last_rung}"
    times = medians_us(ways, options)
    quotients = {f"/ {peer}": times["opwright"] / times[peer] for peer in ("bare", "eager")}
    return Row(family.name, times | quotients)


def _tensors(family: Family, *, requires_grad: bool) -> list[torch.Tensor]:
    tensors = [torch.linspace(-1, 1, 8), torch.linspace(1, 2, 8)]
    tensors = [tensor.requires_grad_(requires_grad) for tensor in tensors]
    return tensors if family.besides is None else [*tensors, family.besides]


def _forward(*, requires_grad: bool) -> Prepare:
    def prepare(function: Callable[..., Any], call: Call, family: Family) -> Thunk:
        return _thunk(function, call, family, requires_grad=requires_grad)

    return prepare


def _thunk(function: Callable[..., Any], call: Call, family: Family, *, requires_grad: bool) -> Thunk:
    tensors = _tensors(family, requires_grad=requires_grad)
    if family.operator is mutating and requires_grad:
        return lambda: call(function, [tensors[0].clone(), tensors[1]])
    return lambda: call(function, tensors)


def _training(function: Callable[..., Any], call: Call, family: Family) -> Thunk:
    forward = _thunk(function, call, family, requires_grad=True)
    ones = torch.ones(8)

    def train() -> None:
        result = forward()
        results = list(result.values()) if isinstance(result, dict) else result
        results = [results] if isinstance(results, torch.Tensor) else results
        torch.autograd.backward(results, [ones] * len(results))

    return train


if __name__ == "__main__":
    run_script(measure, __doc__)
