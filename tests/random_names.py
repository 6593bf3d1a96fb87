"""Names that emitted code could mistake for its own, and random functions whose variables are called so.

The names are found where emitted code has its words from: the package's headers, what these include, the sources that
tests keep, the keywords of C++ and the builtins of Python, and what the emitters put before and behind names.
"""

from __future__ import annotations

import builtins
import keyword
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random

import torch

from opwright import codegen
from opwright.codegen.cpp.names import reserved
from opwright.toolchain.recipe import INCLUDE_DIRECTORY
from tests.random_program import Input, RandomProgram, random_program

_WORD = re.compile(r"(?<![\w.])[a-zA-Z_]\w*")
_PACKAGE = Path(codegen.__file__).parent.parent
_GOLDENS = Path(__file__).parent / "codegen" / "goldens"
_LETTERS = ("α", "β", "θ", "é", "Δx", "_1", "__2", "_0_3")


@dataclass(frozen=True, slots=True)
class Words:
    """Where names come from, by kind."""

    by_kind: Mapping[str, tuple[str, ...]]
    before: tuple[str, ...]
    behind: tuple[str, ...]


@cache
def words() -> Words:
    """Find them; what no Python variable can be called is left out."""
    found = {
        "headers": _words_in(INCLUDE_DIRECTORY.rglob("*.h")),
        "emitted": _words_in([*_GOLDENS.glob("*.cpp"), *_GOLDENS.glob("*.cu")]),
        "system": _system_words(),
        "reserved": set(reserved()),
        "python": {*dir(builtins), *keyword.softkwlist, *dir(torch)},
        "letters": set(_LETTERS),
    }
    emitters = [
        path.read_text() for part in ("codegen", "lowering", "passes") for path in _PACKAGE.rglob(f"{part}/**/*.py")
    ]
    text = "\n".join(emitters) + (_PACKAGE / "operators/stages.py").read_text()
    return Words(
        {kind: tuple(sorted(filter(_can_be_a_variable, each))) for kind, each in found.items()},
        tuple(sorted(set(re.findall(r'f"(\w+_)\{', text)))),
        tuple(sorted({*re.findall(r"\}(_[a-z]\w*)", text), "_size_0", "_size_1", "_stride_0", "_0", "_1"})),
    )


def _words_in(paths: Iterable[Path]) -> set[str]:
    return {word for path in paths for word in _WORD.findall(path.read_text())}


def _system_words() -> set[str]:
    """The words of what emitted sources include from outside: of the C and C++ libraries, and of the compiler."""
    text = '#include "opwright/cuda/launches.h"\n#include <math.h>\n#include <stdlib.h>\n#include <stdio.h>\n'
    command = ["c++", "-std=c++17", f"-I{INCLUDE_DIRECTORY}", "-E", "-x", "c++", "-"]
    return set(_WORD.findall(subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout))


def _can_be_a_variable(word: str) -> bool:
    return word.isidentifier() and not keyword.iskeyword(word) and word != "__debug__"  # which nobody may assign


class Namer:
    """Gives variables of one function names, each its own."""

    def __init__(self, random: Random, taken: Iterable[str]) -> None:
        self.random = random
        self.taken = set(taken)
        self.given: list[str] = []

    def name(self) -> str:
        """One that no other variable has."""
        while (name := self._wish()) in self.taken or not _can_be_a_variable(name):
            pass
        self.taken.add(name)
        self.given.append(name)
        return name

    def _wish(self) -> str:
        found = words()
        if self.given and self.random.random() < 0.35:
            other = self.random.choice(self.given)
            if self.random.random() < 0.2:
                return self.random.choice(found.before) + other
            return other + self.random.choice(found.behind)
        if self.random.random() < 0.4:
            return self.random.choice(found.by_kind["emitted"])
        return self.random.choice(found.by_kind[self.random.choice(sorted(found.by_kind))])


def renamed(text: str, variables: Sequence[str], random: Random) -> tuple[str, dict[str, str]]:
    """A function with other names for its variables, and these names; its words stay what they are."""
    namer = Namer(random, set(_WORD.findall(text)) - set(variables))
    names = {variable: namer.name() for variable in variables}
    return re.sub(rf"\b({'|'.join(variables)})\b", lambda found: names[found[1]], text), names


def renamed_program(seed: int, statements: int = 10) -> RandomProgram:
    """The random program of a seed with names that could be mistaken."""
    program = random_program(seed, statements)
    variables = sorted({*re.findall(r"\bv\d+\b", program.text), *(given.name for given in program.inputs)})
    text, names = renamed(program.text, variables, Random(seed))
    inputs = tuple(replace(given, name=names[given.name]) for given in program.inputs)
    return RandomProgram(text, inputs, program.sizes)


@dataclass(frozen=True, slots=True)
class Shape:
    """A function that exercises one way of writing kernels: its text, its tensors, and how many numbers it takes."""

    text: str
    inputs: tuple[Input, ...]
    numbers: int = 0


def _tensors(*shapes: str) -> tuple[Input, ...]:
    return tuple(
        Input(f"x{at}", torch.float64, tuple(shape.split()), "row-major", True) for at, shape in enumerate(shapes)
    )


SHAPES = {
    "rows": Shape(
        """
def program(x0: torch.Tensor, x1: torch.Tensor, k0: float):
    v0 = x0.mean(-1, keepdim=True)
    v1 = x0.amax(-1, keepdim=True)
    v2 = functional.softmax((x0 - v0) * x1 * k0 + v1, -1)
    v3 = v2.sum(-1)
    return v2, v3
""",
        _tensors("B N", "B 1"),
        1,
    ),
    "normalized": Shape(
        """
def program(x0: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor, k0: float):
    v0, v1 = torch.var_mean(x0, -1, correction=0, keepdim=True)
    v2 = (x0 - v1) * torch.rsqrt(v0 + 0.1)
    v3 = v2 * x1 + x2 * k0
    return v3
""",
        _tensors("B N", "N", "N"),
        1,
    ),
    "points": Shape(
        """
def program(x0: torch.Tensor, x1: torch.Tensor, k0: float, k1: float):
    v0, v1 = x0.chunk(2, -1)
    v2 = torch.tanh(v0 * k0) * torch.sigmoid(v1 + k1)
    v3 = torch.cat([v2, x1 * v0], 0)
    v4 = v3.mT.sin()
    return v3, v4
""",
        _tensors("B 4", "B 2"),
        2,
    ),
    "columns": Shape(
        """
def program(x0: torch.Tensor, x1: torch.Tensor):
    v0 = torch.exp(x0 * 0.1) * x1
    v1 = v0.sum(0)
    v2 = (v0 * x0).mean(0, keepdim=True)
    v3 = x0.sum()
    return v1, v2, v3
""",
        _tensors("B N", "N"),
    ),
    "calls": Shape(
        """
def program(x0: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor):
    v0 = x0 @ x1
    v1 = torch.tanh(v0 + x2)
    v2 = v1 @ x1.mT
    v3 = v2[:, 1:] * x0[:, :1]
    return v1, v3
""",
        _tensors("B N", "N M", "M"),
    ),
    "short": Shape(
        """
def program(x0: torch.Tensor, x1: torch.Tensor):
    v0 = x0[:, None] - x1[None]
    v1 = v0.square().sum(-1)
    v2 = torch.sqrt(v1 + 0.5)
    return v2.sum(-1), v1
""",
        _tensors("B 3", "N 3"),
    ),
    "looked_up": Shape(
        """
def program(x0: torch.Tensor, x1: torch.Tensor):
    v0 = (x1 * 0).to(torch.int64)
    v1 = functional.embedding(v0, x0)
    v2 = v1.sin() * v0[:, None].cos()
    return v2, v1.sum()
""",
        _tensors("B N", "M"),
    ),
}


@dataclass(frozen=True, slots=True)
class NamedShape:
    """A shape with names that could be mistaken."""

    text: str
    inputs: tuple[Input, ...]
    numbers: int


def named_shape(kind: str, seed: int) -> NamedShape:
    """A shape with the names of a seed."""
    shape = SHAPES[kind]
    variables = sorted(set(re.findall(r"\b[vxk]\d\b", shape.text)))
    text, names = renamed(shape.text, variables, Random(f"{kind} {seed}"))
    return NamedShape(text, tuple(replace(each, name=names[each.name]) for each in shape.inputs), shape.numbers)
