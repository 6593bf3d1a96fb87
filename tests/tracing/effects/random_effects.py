"""Random functions that change objects outside of them, or only objects of their own, at random depth."""

from __future__ import annotations

import random
import types
from dataclasses import dataclass

_BEGIN = """
import torch
from torch import Tensor
TABLE, LOG, SEEN, COUNT, NESTED = {"kept": 1}, [0], {0}, 0, {"deep": [{"log": []}]}
class Box:
    total = 0
    def __init__(self):
        self.last, self.items = None, []
    def keep(self, value):
        self.items.append(value)
BOX = Box()
"""
_OUTSIDE = (
    "TABLE[{n}] = y",
    "TABLE['sum'] = TABLE.get('sum', 0) + {n}",
    "TABLE.pop('kept', None)",
    "TABLE.update(y=y)",
    "TABLE.setdefault('all', []).append(y)",
    "LOG.append({n})",
    "LOG.extend([y, {n}])",
    "LOG[0] = y",
    "SEEN.add({n} + len(SEEN))",
    "NESTED['deep'][0]['log'].append(y)",
    "BOX.last = y",
    "BOX.keep(y)",
    "BOX.items += [{n}]",
    "Box.total += 1",
    "setattr(BOX, 'v{n}', y)",
    "globals()['MADE'] = y",
    "alias = LOG; alias += [y]",
)
_LOCAL = (
    "table = dict(TABLE); table[{n}] = y; y = table[{n}]",
    "log = [y]; log.append({n}); y = log[0] + log[1]",
    "box = Box(); box.keep(y); box.last = y; y = box.items[0] * {n}",
    "y = y.clone(); y[0] = {n}",
    "y += {n}",
    "seen = set(); seen.add({n}); y = y * len(seen)",
    "setattr(Box(), 'v{n}', y)",
    "parts = {{}}; parts.update(a=y); y = parts.pop('a') + {n}",
)


@dataclass(frozen=True, slots=True)
class Program:
    """The source of a function `f`, and whether it changes anything outside."""

    source: str
    has_effect: bool

    def load(self) -> types.ModuleType:
        """Run it in a module of its own."""
        module = types.ModuleType("random_effects_program")
        exec(compile(self.source, "<random effects>", "exec"), vars(module))
        return module


def random_program(seed: int) -> Program:
    """Make a program; half of them change nothing outside."""
    draw = random.Random(seed)
    has_effect = draw.random() < 0.5
    lines = [_line(draw, _LOCAL) for _ in range(draw.randint(1, 3))]
    if has_effect:
        lines.insert(draw.randint(0, len(lines)), _line(draw, _OUTSIDE))
    depth = draw.randint(0, 2)
    functions = [_function("f0", "x: Tensor", lines, "return y")]
    for level in range(depth):
        call = [f"y = f{level}(y)", *(_line(draw, _LOCAL) for _ in range(draw.randint(0, 1)))]
        functions.append(_function(f"f{level + 1}", "x: Tensor", call, "return y"))
    return Program(_BEGIN + "\n".join(functions) + f"\nf = f{depth}\n", has_effect)


def _line(draw: random.Random, lines: tuple[str, ...]) -> str:
    return draw.choice(lines).format(n=draw.randint(1, 9))


def _function(name: str, parameter: str, lines: list[str], end: str) -> str:
    body = [f"def {name}({parameter}) -> Tensor:", "    y = x * 2", *(f"    {line}" for line in lines), f"    {end}"]
    return "\n".join(body)
