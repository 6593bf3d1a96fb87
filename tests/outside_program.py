"""Random functions that read values from outside their arguments, and the statements that change these values.

A program is a module's text: what it reads, the function `program`, and `change(k, value)`, which gives what is read at
place k another value.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

VALUES = ("0.5", "1.5", "2.0", "-3.0", "0.25", "-0.0")
PREAMBLE = """
import collections, contextvars, dataclasses, enum, functools, os, sys, types
import numpy, torch
import torch.nn.functional as F
Tensor = torch.Tensor
"""


@dataclass(frozen=True, slots=True)
class Read:
    """A way to read a number from outside.

    Attributes:
        setup: Statements that put the value `{v}` where the function finds it; `{i}` tells places apart.
        read: The expression in the function.
        change: Statements that make the value `value`.
        before: Statements at the beginning of the function.
    """

    setup: str
    read: str
    change: str
    before: str = ""


READS: dict[str, Read] = {
    "global": Read("g{i} = {v}", "g{i}", "global g{i}; g{i} = value"),
    "global of a helper": Read(
        "h{i} = {v}\ndef helper{i}(): return h{i}", "helper{i}()", "global h{i}; h{i} = value"
    ),
    "branch": Read("b{i} = {v} > 1", "(2.0 if b{i} else 3.0)", "global b{i}; b{i} = value > 1"),
    "text": Read("t{i} = 'a{v}'", "(2.0 if t{i} == 'a0.5' else 3.0)", "global t{i}; t{i} = f'a{{value}}'"),
    "tuple": Read("p{i} = (1, ({v}, 2))", "p{i}[1][0]", "global p{i}; p{i} = (1, (value, 2))"),
    "list": Read("l{i} = [1, {v}]", "l{i}[1]", "l{i}[1] = value"),
    "length of a list": Read("n{i} = [1] * (2 + ({v} > 1))", "len(n{i})", "n{i}[:] = [1] * (2 + (value > 1))"),
    "dict": Read("d{i} = {{'a': {v}}}", "d{i}['a']", "d{i}['a'] = value"),
    "order of a dict": Read(
        "o{i} = {{'a': 1.0, 'b': 2.0}}", "next(iter(o{i}.values()))", "o{i}['a'] = o{i}.pop('a')"
    ),
    "nested dict": Read("e{i} = {{'a': {{'b': [{v}]}}}}", "e{i}['a']['b'][0]", "e{i}['a']['b'][0] = value"),
    "new dict": Read("w{i} = {{'a': {v}}}", "w{i}['a']", "global w{i}; w{i} = {{'a': value}}"),
    "set": Read("s{i} = {{1, {v}}}", "(2.0 if 1.5 in s{i} else 3.0)", "s{i}.clear(); s{i}.update({{1, value}})"),
    "queue": Read("q{i} = collections.deque([{v}])", "q{i}[0]", "q{i}[0] = value"),
    "ordered dict": Read("u{i} = collections.OrderedDict(a={v})", "u{i}['a']", "u{i}['a'] = value"),
    "read-only dict": Read(
        "vs{i} = {{'a': {v}}}\nv{i} = types.MappingProxyType(vs{i})", "v{i}['a']", "vs{i}['a'] = value"
    ),
    "attribute": Read(
        "class A{i}:\n    def __init__(self): self.scale = {v}\na{i} = A{i}()", "a{i}.scale", "a{i}.scale = value"
    ),
    "new object": Read(
        "class X{i}:\n    def __init__(self, v): self.scale = v\nx{i} = X{i}({v})",
        "x{i}.scale",
        "global x{i}; x{i} = X{i}(value)",
    ),
    "attribute of an attribute": Read(
        "class B{i}: pass\nc{i} = B{i}(); c{i}.inner = B{i}(); c{i}.inner.scale = {v}",
        "c{i}.inner.scale",
        "c{i}.inner.scale = value",
    ),
    "attribute by a computed name": Read(
        "k{i} = types.SimpleNamespace(scale={v})", "getattr(k{i}, 'sc' + 'ale')", "k{i}.scale = value"
    ),
    "attribute of a class": Read("class C{i}: scale = {v}", "C{i}.scale", "C{i}.scale = value"),
    "attribute of a base class": Read(
        "class D{i}: scale = {v}\nclass E{i}(D{i}): pass\nde{i} = E{i}()", "de{i}.scale", "D{i}.scale = value"
    ),
    "attribute that hides another": Read(
        "class H{i}: scale = {v}\nhi{i} = H{i}()", "hi{i}.scale", "hi{i}.scale = value"
    ),
    "slot": Read(
        "class S{i}:\n    __slots__ = ('scale',)\nsl{i} = S{i}(); sl{i}.scale = {v}",
        "sl{i}.scale",
        "sl{i}.scale = value",
    ),
    "property": Read(
        "class P{i}:\n    def __init__(self): self.v = {v}\n    @property\n    def scale(self): return self.v\n"
        "pr{i} = P{i}()",
        "pr{i}.scale",
        "pr{i}.v = value",
    ),
    "data class": Read(
        "@dataclasses.dataclass\nclass DC{i}:\n    scale: float\ndc{i} = DC{i}({v})",
        "dc{i}.scale",
        "dc{i}.scale = value",
    ),
    "named tuple": Read(
        "NT{i} = collections.namedtuple('NT{i}', 'scale other')\nnt{i} = NT{i}({v}, 1)",
        "nt{i}.scale",
        "global nt{i}; nt{i} = NT{i}(value, 1)",
    ),
    "attribute of a number": Read(
        "class FA{i}(float): pass\nfb{i} = FA{i}(1); fb{i}.v = {v}", "fb{i}.v", "fb{i}.v = value"
    ),
    "number that spells itself": Read(
        "class FR{i}(float):\n    def __repr__(self): return 'v'\n    def __eq__(self, other): return True\n"
        "fr{i} = FR{i}({v})",
        "float(fr{i})",
        "global fr{i}; fr{i} = FR{i}(value)",
    ),
    "set of a class": Read(
        "class SC{i}(set): pass\nsc{i} = SC{i}({{1, {v}}})",
        "(2.0 if 1.5 in sc{i} else 3.0)",
        "sc{i}.clear(); sc{i}.update({{1, value}})",
    ),
    "attribute of a base of Python's": Read(
        "class UD{i}(collections.UserDict): pass\nud{i} = UD{i}(a={v})", "ud{i}['a']", "ud{i}['a'] = value"
    ),
    "method of an enum": Read(
        "class EM{i}(enum.Enum):\n    A = 1\n    def scale(self): return ek{i}\nek{i} = {v}\nem{i} = EM{i}.A",
        "em{i}.scale()",
        "global ek{i}; ek{i} = value",
    ),
    "method": Read(
        "class M{i}:\n    def __init__(self): self.v = {v}\n    def scale(self): return self.v\nm{i} = M{i}()",
        "m{i}.scale()",
        "m{i}.v = value",
    ),
    "another method": Read(
        "class N{i}:\n    def scale(self): return {v}\nmn{i} = N{i}()",
        "mn{i}.scale()",
        "N{i}.scale = lambda self: value",
    ),
    "method of one object": Read(
        "class O{i}:\n    def scale(self): return {v}\nmo{i} = O{i}()", "mo{i}.scale()", "mo{i}.scale = lambda: value"
    ),
    "static method": Read(
        "class T{i}:\n    @staticmethod\n    def scale(): return {v}",
        "T{i}.scale()",
        "T{i}.scale = staticmethod(lambda: value)",
    ),
    "class method": Read(
        "class U{i}:\n    v = {v}\n    @classmethod\n    def scale(cls): return cls.v", "U{i}.scale()", "U{i}.v = value"
    ),
    "called object": Read(
        "class F{i}:\n    def __init__(self): self.v = {v}\n    def __call__(self): return self.v\nf{i} = F{i}()",
        "f{i}()",
        "f{i}.v = value",
    ),
    "member of an object": Read(
        "class G{i}:\n    def __init__(self): self.v = {{'a': {v}}}\n"
        "    def __getitem__(self, name): return self.v[name]\ngi{i} = G{i}()",
        "gi{i}['a']",
        "gi{i}.v['a'] = value",
    ),
    "attribute that is made up": Read(
        "class J{i}:\n    def __init__(self): self.held = {{'scale': {v}}}\n"
        "    def __getattr__(self, name):\n"
        "        if name.startswith('_') or name == 'held': raise AttributeError(name)\n"
        "        return self.held[name]\nj{i} = J{i}()",
        "j{i}.scale",
        "j{i}.held['scale'] = value",
    ),
    "closure": Read(
        "def make{i}():\n    inner = {v}\n    def get(): return inner\n"
        "    def put(v):\n        nonlocal inner; inner = v\n"
        "    return get, put\nget{i}, put{i} = make{i}()",
        "get{i}()",
        "put{i}(value)",
    ),
    "new closure": Read(
        "def made{i}(v):\n    def get(): return v\n    return get\ncl{i} = made{i}({v})",
        "cl{i}()",
        "global cl{i}; cl{i} = made{i}(value)",
    ),
    "new function": Read("r{i} = lambda: {v}", "r{i}()", "global r{i}; r{i} = lambda: value"),
    "default": Read("def df{i}(v={v}): return v", "df{i}()", "df{i}.__defaults__ = (value,)"),
    "default of a keyword": Read("def dk{i}(*, v={v}): return v", "dk{i}()", "dk{i}.__kwdefaults__ = {{'v': value}}"),
    "code": Read(
        "def co{i}(): return {v}\ndef other{i}(): return 7.0", "co{i}()", "co{i}.__code__ = other{i}.__code__"
    ),
    "attribute of a function": Read("def fa{i}(): return fa{i}.v\nfa{i}.v = {v}", "fa{i}()", "fa{i}.v = value"),
    "partial": Read(
        "def add{i}(v): return v\npa{i} = functools.partial(add{i}, v={v})",
        "pa{i}()",
        "global pa{i}; pa{i} = functools.partial(add{i}, v=value)",
    ),
    "wrapped": Read(
        "wv{i} = {v}\ndef deco{i}(f):\n    @functools.wraps(f)\n    def g(*a): return f(*a) * wv{i}\n    return g\n"
        "@deco{i}\ndef wr{i}(): return 2.0",
        "wr{i}()",
        "global wv{i}; wv{i} = value",
    ),
    "under no_grad": Read(
        "nv{i} = {v}\n@torch.no_grad()\ndef ng{i}(): return nv{i}", "ng{i}()", "global nv{i}; nv{i} = value"
    ),
    "module": Read(
        "mod{i} = types.ModuleType('outside_mod{i}'); mod{i}.scale = {v}", "mod{i}.scale", "mod{i}.scale = value"
    ),
    "imported inside": Read(
        "sys.modules['outside_in{i}'] = types.ModuleType('outside_in{i}'); sys.modules['outside_in{i}'].scale = {v}",
        "in{i}.scale",
        "sys.modules['outside_in{i}'].scale = value",
        "import outside_in{i} as in{i}",
    ),
    "imported by name": Read(
        "sys.modules['outside_from{i}'] = types.ModuleType('outside_from{i}')\n"
        "sys.modules['outside_from{i}'].scale = {v}",
        "fr{i}",
        "sys.modules['outside_from{i}'].scale = value",
        "from outside_from{i} import scale as fr{i}",
    ),
    "replaced module": Read(
        "sys.modules['outside_re{i}'] = types.ModuleType('outside_re{i}'); sys.modules['outside_re{i}'].scale = {v}",
        "re{i}.scale",
        "new = types.ModuleType('outside_re{i}'); new.scale = value; sys.modules['outside_re{i}'] = new",
        "import outside_re{i} as re{i}",
    ),
    "context variable": Read("cv{i} = contextvars.ContextVar('cv{i}', default={v})", "cv{i}.get()", "cv{i}.set(value)"),
    "environment": Read(
        "os.environ['OUTSIDE_{i}'] = '{v}'",
        "float(os.environ['OUTSIDE_{i}'])",
        "os.environ['OUTSIDE_{i}'] = str(value)",
    ),
    "environment by getenv": Read(
        "os.environ.pop('OUTSIDE_G{i}', None)",
        "float(os.getenv('OUTSIDE_G{i}', '{v}'))",
        "os.environ['OUTSIDE_G{i}'] = str(value)",
    ),
    "gradient mode": Read("", "(2.0 if torch.is_grad_enabled() else 3.0)", "torch.set_grad_enabled(value > 1)"),
    "member of an enum": Read(
        "class En{i}(enum.Enum):\n    A = 2.0\n    B = 3.0\nen{i} = En{i}.B if {v} > 1 else En{i}.A",
        "en{i}.value",
        "global en{i}; en{i} = En{i}.B if value > 1 else En{i}.A",
    ),
    "number of NumPy": Read("np{i} = numpy.float64({v})", "float(np{i})", "global np{i}; np{i} = numpy.float64(value)"),
    "small array": Read("ar{i} = numpy.array([1.0, {v}])", "float(ar{i}[1])", "ar{i}[1] = value"),
    "setting of a layer": Read(
        "la{i} = torch.nn.Threshold(-1e9, {v})", "la{i}.value", "la{i}.value = value"
    ),
    "shape of a tensor": Read(
        "te{i} = torch.zeros(2 + ({v} > 1))", "te{i}.shape[0]", "global te{i}; te{i} = torch.zeros(2 + (value > 1))"
    ),
    "built-in that is hidden": Read("", "max(1.0, 2.0)", "global max; max = lambda a, b: value"),
    "exchanged library": Read(
        "li{i} = types.SimpleNamespace(f=lambda: {v})",
        "li{i}.f()",
        "global li{i}; li{i} = types.SimpleNamespace(f=lambda: value)",
    ),
    "absent attribute": Read(
        "class Ab{i}: pass\nab{i} = Ab{i}()", "getattr(ab{i}, 'scale', {v})", "ab{i}.scale = value"
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class OutsideProgram:
    """A program.

    Attributes:
        text: Its module.
        reads: The kinds of its reads, by place.
    """

    text: str
    reads: tuple[str, ...]


def random_outside_program(seed: int) -> OutsideProgram:
    """A function of one tensor that reads one to three values."""
    random = Random(seed)
    kinds = [list(READS)[seed % len(READS)], *random.sample(list(READS), random.randint(0, 2))]
    kinds = list(dict.fromkeys(kinds))
    setup, before, body, changes = [], [], ["    y = x"], []
    for place, kind in enumerate(kinds):
        read, value = READS[kind], random.choice(VALUES)
        fill = {"i": place, "v": value}
        setup.append(read.setup.format(**fill))
        if read.before:
            before.append("    " + read.before.format(**fill))
        operation = random.choice(("y * {}", "torch.tanh(y) + {}", "y - {}", "F.relu(y) * {}", "torch.sin(y * {})"))
        body.append("    y = " + operation.format(f"({read.read.format(**fill)})"))
        changes += [f"def change_{place}(value):", *(f"    {s}" for s in read.change.format(**fill).split("\n"))]
    if random.random() < 0.3:  # not in the function itself
        body = ["    def inner(y):", *(f"    {line}" for line in body[1:]), "        return y", "    y = inner(x)"]
    text = "\n".join(
        [PREAMBLE, *setup, "def program(x: Tensor) -> Tensor:", *before, *body, "    return y", *changes,
         f"def change(place, value): {{{', '.join(f'{p}: change_{p}' for p in range(len(kinds)))}}}[place](value)"]
    )  # fmt: skip
    return OutsideProgram(text, tuple(kinds))
