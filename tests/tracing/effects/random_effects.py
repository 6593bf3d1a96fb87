"""Random functions that change objects outside of them, or only objects of their own, at random depth."""

from __future__ import annotations

import random
import types
from dataclasses import dataclass

_BEGIN = """
import array, collections, heapq, numpy, torch
from torch import Tensor
TABLE, LOG, SEEN, COUNT, NESTED = {"kept": 1}, [0], {0}, 0, {"deep": [{"log": []}]}
NESTED["defaulted"] = [collections.defaultdict(list)]
QUEUE, ORDERED = collections.deque([1, 2, 3], maxlen=4), collections.OrderedDict(a=1, b=2)
DEFAULTED, COUNTED = collections.defaultdict(list), collections.Counter(a=1)
NUMBERS, HEAP, BYTES, DOUBLES = numpy.zeros(9), [3, 5], bytearray(9), array.array("d", [0.0])
RECORD, FIELDS = numpy.zeros((), [("a", "f8")])[()], numpy.zeros(2, [("a", "f8")])
VIEW = memoryview(bytearray(9))
NESTED["records"] = [RECORD]
class Slots:
    __slots__ = ("value",)
SLOTS = Slots()
class Box:
    total = 0
    def __init__(self):
        self.last, self.items = None, []
        self.held = collections.defaultdict(list)
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
    "LOG.insert(0, {n})",
    "LOG.reverse(); LOG.append({n})",
    "LOG[:] = [{n}, y]",
    "LOG.pop(); LOG.append({n})",
    "alias = TABLE; alias |= {{'n': {n}}}",
    "alias = SEEN; alias |= {{{n} + 100}}",
    "QUEUE.append({n})",
    "QUEUE.rotate(1)",
    "ORDERED.move_to_end('a', last={n} % 2 == 0); ORDERED[{n}] = y",
    "DEFAULTED[{n}].append(y)",
    "DEFAULTED[len(DEFAULTED)]",
    "held = BOX.held; held[len(held)]",
    "for held in NESTED['defaulted']: held[len(held)]",
    "VIEW[{n} - 1] += 1",
    "NUMBERS.put([0], [NUMBERS[0] + {n}])",
    "NESTED['records'][0]['a'] += {n}",
    "COUNTED.update(['a'] * {n})",
    "COUNTED['b'] += 1",
    "NUMBERS[{n} - 1] += 1",
    "NUMBERS.fill(NUMBERS[0] + {n})",
    "numpy.add(NUMBERS, {n}, out=NUMBERS)",
    "RECORD['a'] += {n}",
    "FIELDS['a'][1] += {n}",
    "heapq.heappush(HEAP, {n})",
    "BYTES[{n} - 1] += 1",
    "DOUBLES.append({n})",
    "SLOTS.value = y",
    "BOX.__dict__['direct'] = y",
    "BOX.items.extend(v for v in [{n}])",
    "[LOG.append(v) for v in range({n})]",
    "list(map(LOG.append, [{n}]))",
    "nested = NESTED['deep']; nested[0].update(n={n})",
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
    "log = list(LOG[:0]); log.insert(0, y); log.reverse(); y = log.pop() * {n}",
    "queue = collections.deque([y]); queue.append({n}); y = queue.popleft() + queue[0]",
    "parts = collections.defaultdict(list); parts['a'].append(y); y = parts['a'][0] * {n}",
    "heap = [9]; heapq.heappush(heap, {n}); y = y * heap[0]",
    "numbers = [v for v in range({n})]; numbers[0] = {n}; y = y + sum(numbers)",
)


EFFECTS = len(_OUTSIDE)


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


def program_with(effect: int) -> Program:
    """A program with one effect of those there are."""
    line = _OUTSIDE[effect].format(n=3)
    return Program(_BEGIN + _function("f", "x: Tensor", [line], "return y"), has_effect=True)


def _line(draw: random.Random, lines: tuple[str, ...]) -> str:
    return draw.choice(lines).format(n=draw.randint(1, 9))


def _function(name: str, parameter: str, lines: list[str], end: str) -> str:
    body = [f"def {name}({parameter}) -> Tensor:", "    y = x * 2", *(f"    {line}" for line in lines), f"    {end}"]
    return "\n".join(body)
