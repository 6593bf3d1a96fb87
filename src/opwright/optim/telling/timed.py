"""`bench` of an optimizer: its steps beside its definition and beside torch.optim's of the same name."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

import torch

from opwright.optim.definition import Definition
from opwright.optim.kinds import call
from opwright.report.shown import Shown

if TYPE_CHECKING:
    from rich.console import RenderableType

ROUNDS = 25
_WARMING = 3
_LEAST, _MOST = 64, 65_536
COUNT = 300


@dataclass(frozen=True, slots=True, repr=False)
class StepTimes(Shown):
    """How long a step takes.

    Attributes:
        optimizer: The name.
        elements: How many elements the parameters have together.
        tensors: How many parameters there are.
        median_us: By the way that it is run, in µs.
    """

    optimizer: str
    elements: int
    tensors: int
    median_us: Mapping[str, float]

    def _table(self) -> RenderableType:
        from rich.table import Table

        table = Table("", "µs", title=f"{self.optimizer}, {self.tensors} tensors, {self.elements:,} elements")
        for way, median_us in self.median_us.items():
            table.add_row(way, f"{median_us:.0f}")
        return table


def sizes_between(count: int, least: int = _LEAST, most: int = _MOST) -> list[int]:
    """Sizes of tensors, evenly apart by their logarithms."""
    return [round(least * (most / least) ** (position / max(1, count - 1))) for position in range(count)]


def timed(
    make: Callable[..., torch.optim.Optimizer],
    definition: Definition,
    hyper: Mapping[str, Any],
    sizes: Sequence[int],
    rounds: int,
) -> StepTimes:
    """Measure steps, each way in turn."""
    ways: dict[str, Callable[[], object]] = {
        "kernels": make(_parameters(sizes)).step,
        "definition": _definition(definition, hyper, sizes),
    }
    ways |= dict(_of_torch(definition, hyper, sizes))
    times: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(rounds + _WARMING):
        for way, step in ways.items():
            begin = time.perf_counter()
            step()
            if turn >= _WARMING:
                times[way].append((time.perf_counter() - begin) * 1e6)
    medians = {way: median(found) for way, found in times.items()}
    return StepTimes(definition.name, sum(sizes), len(sizes), medians)


def _parameters(sizes: Sequence[int]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    params = [torch.randn(size, generator=generator).requires_grad_() for size in sizes]
    for param in params:
        param.grad = torch.randn(param.shape, generator=generator)
    return params


def _definition(definition: Definition, hyper: Mapping[str, Any], sizes: Sequence[int]) -> Callable[[], object]:
    params = _parameters(sizes)
    states = [[definition.start(name, param, hyper) for name in definition.states] for param in params]
    count = 0

    def step() -> None:
        nonlocal count
        count += 1
        with torch.no_grad():
            for param, kept in zip(params, states, strict=True):
                new, *made = call(definition, param, param.grad, kept, float(count), hyper)
                param.copy_(new)
                for state, value in zip(kept, made, strict=True):
                    if state is not None:
                        state.copy_(value)

    return step


def _of_torch(
    definition: Definition, hyper: Mapping[str, Any], sizes: Sequence[int]
) -> Iterator[tuple[str, Callable[[], object]]]:
    cls = getattr(torch.optim, definition.name, None)
    if cls is None:
        return
    for way, options in (("fused", {"fused": True}), ("foreach", {"foreach": True}), ("loop", {"foreach": False})):
        try:
            yield f"torch.optim, {way}", cls(_parameters(sizes), **hyper, **options).step
        except (TypeError, RuntimeError):
            continue  # it is not run this way, or has other arguments
