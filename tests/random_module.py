"""A module of random programs as operators, and a judge of what was made of it where opwright is not.

    folder / "programs.py"    has the text of `module_of(range(10))`; a wheel or a project is made of it
    faults_of(module)         in a process that has it: how its functions differ from the programs

The judge writes the programs anew, so it needs torch alone.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

import torch

from tests.random_program import RandomProgram, Sizes, Tensors, other_sizes, outputs_and_gradients, random_program, runs

_STATEMENTS = 7
_HEAD = """import torch
from torch.nn import functional

import opwright
from tests.random_module import samples_of
"""


def module_of(seeds: Iterable[int]) -> str:
    """The text of a module with an operator `program_<seed>` for each program that runs."""
    parts = [_HEAD]
    for seed in seeds:
        program = program_of(seed)
        if runs(program, program.sizes, seed):
            text = program.text.replace("def program(", f"def program_{seed}(")
            parts.append(f"\n\n@opwright.operator(samples=samples_of({seed}))\n{text}")
    return "".join(parts)


def samples_of(seed: int) -> Callable[[str, torch.dtype], list[Any]]:
    """Samples of a program at its sizes, row by row."""
    from opwright import Sample

    def samples(device: str, dtype: torch.dtype) -> list[Any]:
        program = program_of(seed)
        arguments = [argument.contiguous() for argument in program.arguments(program.sizes)]
        return [Sample(tuple(_in_dtype(argument, dtype).to(device) for argument in arguments))]

    return samples


def faults_of(module: ModuleType, rungs: set[str]) -> Iterator[str]:
    """How the functions of a module differ from the programs: results, gradients, and theirs.

    Args:
        module: What was made of `module_of`.
        rungs: Takes the `last_rung` of each call of functions that tell it.
    """
    for name in filter(re.compile(r"program_\d+").fullmatch, dir(module)):
        function, seed = getattr(module, name), int(name.rpartition("_")[2])
        program = program_of(seed)
        for sizes, dtype in itertools.product(_sizes(program, seed), (torch.float64, torch.float32)):
            arguments = [_in_dtype(argument, dtype) for argument in program.arguments(sizes, seed)]
            for twice in (False, True):
                expected, found = (_told(each, arguments, twice) for each in (program.function(), function))
                rungs.add(getattr(function, "last_rung", "unknown"))
                if difference := _difference(expected, found):
                    yield f"{name}, sizes {sizes}, {dtype}, twice {twice}: {difference}\n{program.text}"


def program_of(seed: int) -> RandomProgram:
    """The program of a seed."""
    return random_program(seed, statements=_STATEMENTS)


def _sizes(program: RandomProgram, seed: int) -> Iterator[Sizes]:
    yield program.sizes
    yield other_sizes(program, seed)
    yield {name: 5 * size for name, size in program.sizes.items()}
    yield {**program.sizes, "A": 0}
    yield dict.fromkeys(program.sizes, 1)


def _in_dtype(argument: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The same numbers in the same order in memory, in another dtype if they are floating."""
    if not argument.is_floating_point():
        return argument
    return argument.detach().to(dtype).requires_grad_(argument.requires_grad)


def _told(function: Callable[..., Any], arguments: list[torch.Tensor], twice: bool) -> list[Tensors] | None:
    """What it gives; None if it raises."""
    try:
        return outputs_and_gradients(function, arguments, twice=twice)
    except (RuntimeError, IndexError, TypeError, ValueError):
        return None


def _difference(expected: list[Tensors] | None, found: list[Tensors] | None) -> str:
    if expected is None or found is None:
        return "" if expected is found else f"it {'raises' if found is None else 'does not raise'}"
    for what, *both in zip(("results", "gradients", "gradients of gradients"), expected, found, strict=False):
        for position, (one, other) in enumerate(zip(*both, strict=True)):
            if (one is None) != (other is None):
                return f"{what}[{position}] is {'not ' if other is not None else ''}None"
            if one is None or other is None:
                continue
            tolerance = {"rtol": 1e-8, "atol": 1e-9} if one.dtype is torch.float64 else {"rtol": 2e-3, "atol": 2e-3}
            try:
                torch.testing.assert_close(other.detach(), one.detach(), equal_nan=True, **tolerance)
            except AssertionError as error:
                return f"{what}[{position}]: {error}"
    return ""
