"""Rules of random functions and of their gradients, on sizes, processes and values that their proofs do not see.

    python -m tests.sharding.random_rules FIRST LAST

What is wrong is printed with its seed and text.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import torch
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.utils._pytree import tree_leaves

from opwright.api.operator import Operator
from opwright.operators.base import BaseOperator
from opwright.sharding.known import rules_for, specs_of
from opwright.sharding.parts import part_of
from opwright.sharding.prove import Subject, fault_on, small_shapes
from opwright.sharding.rule import Rule
from tests.random_program import random_program

Values = Callable[[tuple[int, ...], torch.Generator], torch.Tensor]
COUNTS = ((4, 9), (5, 3), (3, 7), (4, 8))  # processes, and the size of the axis


def _normal(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def _few(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return torch.randint(-1, 2, shape, generator=generator).double()


VALUES: dict[str, Values] = {
    "a few numbers, with ties and zeros": _few,
    "one sign": lambda shape, generator: -_normal(shape, generator).abs() - 0.1,
    "of very different sizes": lambda s, g: _normal(s, g) * 10.0 ** torch.randint(-3, 4, s, generator=g),
    "all alike": lambda s, g: torch.full(s, 0.5, dtype=torch.float64),
}


def _addends(tensor: torch.Tensor, count: int, generator: torch.Generator, kind: int) -> list[torch.Tensor]:
    """Tensors that sum to one: they cancel, or one has everything, or all the same."""
    match kind % 3:
        case 0:
            made = [1e3 * _normal(tuple(tensor.shape), generator).to(tensor.dtype) for _ in range(count - 1)]
        case 1:
            made = [torch.zeros_like(tensor) for _ in range(count - 1)]
        case _:
            made = [tensor / count for _ in range(count - 1)]
    return [*made, tensor - sum(made, torch.zeros_like(tensor))]


def cut(tensor: torch.Tensor, placement: Any, count: int, generator: torch.Generator, kind: int) -> list[torch.Tensor]:
    """What each process has."""
    if isinstance(placement, Shard):
        return [part_of(tensor, placement.dim, count, index) for index in range(count)]
    return _addends(tensor, count, generator, kind) if isinstance(placement, Partial) else [tensor] * count


@dataclass
class Judged:
    """What came of many rules."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def operators(seed: int) -> Iterator[tuple[str, BaseOperator, list[torch.Tensor]]]:
    """A random operator, the operator of its gradients, and that of theirs, with arguments."""
    program = random_program(seed, statements=Random(seed).randint(1, 6))
    args = [one.detach() for one in program.arguments(program.sizes, seed)]
    operator: BaseOperator = Operator(program.function(), name=f"tests::random_rules_{seed}")
    orders = ("its gradients", *(["the gradients of its gradients"] if seed % 4 == 0 else []))
    for name in (program.text, *orders):
        yield name, operator, args
        try:
            returned = operator.flat_reference(*args)
        except RuntimeError:  # written for other values: an index may be out of bounds for these
            return
        made = [one for one in tree_leaves(returned) if isinstance(one, torch.Tensor)]
        flowing = tuple(p for p, one in enumerate(made) if one.is_floating_point())
        wanted = tuple(p for p, one in enumerate(args) if one.is_floating_point())
        if not flowing or not wanted:
            return
        operator = operator.transforms.backward(wanted, flowing, tuple(range(len(flowing))), len(flowing))
        args = [*args, *[torch.randn_like(made[p]) for p in flowing]]


def judge(seed: int, judged: Judged) -> None:
    """Judge all rules of one function."""
    for what, operator, args in operators(seed):
        specs = specs_of(operator, args, [tuple(one.shape) for one in args])
        derived = rules_for(operator, specs)
        judged.counts["operators"] += 1
        for told in derived.told:
            judged.counts["not proven" if "not proven" in told.why else "refused"] += 1
            if "not proven" in told.why:
                judged.faults.append(f"NOTE {seed}: {told}")
        if len(derived.rules) < 2:
            continue
        subject = Subject(operator.flat_reference, specs, operator.structure(specs))
        for rule in derived.rules[1:]:
            judged.counts["split" if rule.split else "rules"] += 1
            fault = fault_of(subject, rule, seed)
            if fault:
                judged.faults.append(f"WRONG {seed}: {what}: {rule.name}, {rule}: {fault}")


def fault_of(subject: Subject, rule: Rule, seed: int) -> str | None:
    """What is wrong with a rule."""
    for trial, (count, size) in enumerate(COUNTS):
        if rule.even and size % count:
            continue
        shapes = small_shapes(subject, rule, size)
        if shapes is None:
            return "no shapes"
        for name, values in [*VALUES.items()][trial % 2 :: 2]:
            generator = torch.Generator().manual_seed(seed + trial)
            given = [
                _drawn(spec.dtype, shape, values, generator)
                for spec, shape in zip(subject.tensors, shapes, strict=True)
            ]
            if not _takes(subject, rule, given):
                continue
            parts = [cut(one, to, count, generator, trial) for one, to in zip(given, rule.inputs, strict=True)]
            if fault := fault_on(subject, rule, given, parts):
                return f"{count} processes, size {size}, {name}: {fault}"
    return None


def _takes(subject: Subject, rule: Rule, given: list[torch.Tensor]) -> bool:
    """Whether the function itself takes whole tensors of such sizes: one that has an index in it may not."""
    whole = Rule(
        rule.name, (Replicate(),) * len(rule.inputs), (Replicate(),) * len(rule.outputs), (0,) * len(rule.outputs)
    )
    try:
        fault_on(subject, whole, given, [[one] for one in given])
    except (RuntimeError, IndexError):
        return False
    return True


def _drawn(dtype: torch.dtype, shape: tuple[int, ...], values: Values, generator: torch.Generator) -> torch.Tensor:
    if dtype.is_floating_point:
        return values(shape, generator)
    return torch.randint(-3, 4, shape, generator=generator).to(dtype)


def main(first: int, last: int) -> None:
    """Judge functions, and print what is wrong."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    judged, start = Judged(), time.monotonic()
    for seed in range(first, last):
        try:
            judge(seed, judged)
        except Exception as error:
            print(f"RAISED {seed}: {type(error).__name__}: {error}"[:400], flush=True)
        for fault in judged.faults:
            print(fault, flush=True)
        judged.faults.clear()
        if seed % 20 == 0:
            print(seed, f"{time.monotonic() - start:.0f} s", dict(judged.counts), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
