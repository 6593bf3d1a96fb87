"""Random functions that read values from outside their arguments, and the statements that change these values.

A program is a module's text: what it reads, the function `program`, and `change(k, value)`, which gives what is read at
place k another value.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

import torch

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
    "method behind super()": Read(
        "sg{i} = {v}\nclass SA{i}:\n    def scale(self): return sg{i}\n"
        "class SB{i}(SA{i}):\n    def scale(self): return super().scale()\nsb{i} = SB{i}()",
        "sb{i}.scale()",
        "global sg{i}; sg{i} = value",
    ),
    "__init__ behind super()": Read(
        "ig{i} = {v}\nclass IA{i}:\n    def __init__(self): self.scale = ig{i}\n"
        "class IB{i}(IA{i}):\n    def __init__(self): super().__init__()",
        "IB{i}().scale",
        "global ig{i}; ig{i} = value",
    ),
    "__init__ of a class that was met as that of an object": Read(
        "zg{i} = {v}\nclass Z{i}:\n    one = 1.0\n    def __init__(self): self.scale = zg{i}\nA_Z{i} = Z{i}()",
        "A_Z{i}.one * Z{i}().scale",
        "global zg{i}; zg{i} = value",
    ),
    "__init__ by type()": Read(
        "yg{i} = {v}\nclass Y{i}:\n    def __init__(self): self.scale = yg{i}\ny{i} = Y{i}()",
        "type(y{i})().scale",
        "global yg{i}; yg{i} = value",
    ),
    "attribute of a metaclass": Read(
        "class Me{i}(type): scale = {v}\nclass Mc{i}(metaclass=Me{i}): pass", "Mc{i}.scale", "Me{i}.scale = value"
    ),
    "class attribute that is made up": Read(
        "mg{i} = {{'scale': {v}}}\nclass Mg{i}(type):\n    def __getattr__(cls, name): return mg{i}[name]\n"
        "class Mh{i}(metaclass=Mg{i}): pass",
        "Mh{i}.scale",
        "mg{i}['scale'] = value",
    ),
    "text of an object": Read(
        "class Tx{i}:\n    def __init__(self): self.v = {v}\n    def __str__(self): return str(self.v)\n"
        "tx{i} = Tx{i}()",
        "float(f'{{tx{i}}}')",
        "tx{i}.v = value",
    ),
    "subclass of a number": Read(
        "class Fs{i}(float):\n    def __eq__(self, other): return True\n    def __hash__(self): return 1\n"
        "fs{i} = Fs{i}({v})",
        "float(fs{i})",
        "global fs{i}; fs{i} = Fs{i}(value)",
    ),
    "subclass of a set": Read(
        "class Ss{i}(set): pass\nss{i} = Ss{i}([{v}])", "(2.0 if 0.25 in ss{i} else 3.0)", "ss{i}.add(value)"
    ),
    "subclass of UserDict": Read(
        "class Ud{i}(collections.UserDict): pass\nud{i} = Ud{i}(a={v})", "ud{i}['a']", "ud{i}['a'] = value"
    ),
    "default of a dict": Read(
        "dg{i} = {v}\ndd{i} = collections.defaultdict(lambda: dg{i})",
        "dd{i}.default_factory()",
        "global dg{i}; dg{i} = value",
    ),
    "key of a dict": Read(
        "class Ke{i}: pass\nke{i} = Ke{i}(); ke{i}.scale = {v}\nkd{i} = {{ke{i}: 1}}",
        "next(iter(kd{i}.keys())).scale",
        "ke{i}.scale = value",
    ),
    "attribute of a module that is made up": Read(
        "mm{i} = types.ModuleType('outside_made{i}'); mm{i}.held = {{'scale': {v}}}\n"
        "mm{i}.__getattr__ = lambda name: mm{i}.held[name]",
        "mm{i}.scale",
        "mm{i}.held['scale'] = value",
    ),
    "property of a module": Read(
        "class Mt{i}(types.ModuleType):\n    @property\n    def scale(self): return self.held\n"
        "mt{i} = Mt{i}('outside_mt{i}'); mt{i}.held = {v}",
        "mt{i}.scale",
        "mt{i}.held = value",
    ),
    "object out of a cache": Read(
        "@functools.lru_cache\ndef ca{i}(): return types.SimpleNamespace(scale={v})\nca{i}()",
        "ca{i}().scale",
        "ca{i}().scale = value",
    ),
    "cache that is emptied": Read(
        "cg{i} = {v}\n@functools.cache\ndef cc{i}(): return cg{i}\ncc{i}()",
        "cc{i}()",
        "global cg{i}; cg{i} = value; cc{i}.cache_clear()",
    ),
    "attribute that is matched": Read(
        "class Ma{i}: pass\nma{i} = Ma{i}(); ma{i}.scale = {v}\ndef mat{i}():\n    match ma{i}:\n"
        "        case Ma{i}(scale=found): return found",
        "mat{i}()",
        "ma{i}.scale = value",
    ),
    "private slot": Read(
        "class Ps{i}:\n    __slots__ = ('__v',)\n    def __init__(self): self.__v = {v}\n"
        "    def get(self): return self.__v\nps{i} = Ps{i}()",
        "ps{i}.get()",
        "ps{i}._Ps{i}__v = value",
    ),
    "attribute that may be missed": Read(
        "class Mi{i}: pass\nmi{i} = Mi{i}()\ndef mis{i}():\n    try: return mi{i}.scale\n"
        "    except Exception: return {v}",
        "mis{i}()",
        "Mi{i}.scale = value",
    ),
    "global that is missed": Read(
        "def glo{i}():\n    try: return outside_missing{i}\n    except NameError: return {v}",
        "glo{i}()",
        "import builtins; setattr(builtins, 'outside_missing{i}', value)",
    ),
    "argument of the program": Read(
        "sys.argv.append('a{v}')", "(2.0 if 'a1.5' in sys.argv else 3.0)", "sys.argv[-1] = f'a{{value}}'"
    ),
    "attribute of a tensor": Read("ta{i} = torch.zeros(2); ta{i}.scale = {v}", "ta{i}.scale", "ta{i}.scale = value"),
    "weight that a layer gets": Read(
        "lw{i} = torch.nn.LayerNorm(4, elementwise_affine=False)",
        "(2.0 if lw{i}.weight is None else 3.0)",
        "lw{i}.weight = torch.nn.Parameter(torch.ones(4))",
    ),
    "forward of one layer": Read(
        "lf{i} = torch.nn.Identity()", "lf{i}({v})", "lf{i}.forward = lambda y: value"
    ),
    "level of a logger": Read(
        "import logging\nlog{i} = logging.getLogger('outside{i}'); log{i}.setLevel(20)",
        "(2.0 if log{i}.isEnabledFor(10) else 3.0)",
        "log{i}.setLevel(10)",
    ),
    "weak reference": Read(
        "import weakref\nclass We{i}: pass\nwe{i} = We{i}(); we{i}.scale = {v}; wr{i} = weakref.ref(we{i})",
        "wr{i}().scale",
        "we{i}.scale = value",
    ),
    "settings of cuDNN": Read(
        "",
        "(2.0 if torch.backends.cudnn.benchmark else 3.0)",
        "with getattr(torch.backends, '__allow_nonbracketed_mutation')(): torch.backends.cudnn.benchmark = True",
    ),
    "argument of an exception": Read(
        "class Xa{i}(Exception): pass\nxa{i} = Xa{i}({v})", "xa{i}.args[0]", "xa{i}.args = (value,)"
    ),
    "attribute in a format": Read(
        "fo{i} = types.SimpleNamespace(scale={v})", "float('{{0.scale}}'.format(fo{i}))", "fo{i}.scale = value"
    ),
    "attribute that is added": Read(
        "class Va{i}: pass\nva{i} = Va{i}(); va{i}.one = {v}",
        "sum(vars(va{i}).values())",
        "va{i}.two = value if value else 0.125",
    ),
    "default of a context variable": Read(
        "cd{i} = contextvars.ContextVar('cd{i}', default=types.SimpleNamespace(scale={v}))",
        "cd{i}.get().scale",
        "cd{i}.get().scale = value",
    ),
    "under a lock": Read(
        "import threading\nlo{i} = threading.Lock(); lk{i} = {v}\ndef und{i}():\n    with lo{i}: return lk{i}",
        "und{i}()",
        "global lk{i}; lk{i} = value",
    ),
    "argparse.Namespace": Read("import argparse\nns{i} = argparse.Namespace(s={v})", "ns{i}.s", "ns{i}.s = value"),
    "attrgetter": Read(
        "import operator\nag{i} = operator.attrgetter('scale'); ao{i} = types.SimpleNamespace(scale={v})",
        "ag{i}(ao{i})",
        "ao{i}.scale = value",
    ),
    "cached property": Read(
        "class Cp{i}:\n    @functools.cached_property\n    def scale(self): return {v}\ncp{i} = Cp{i}(); cp{i}.scale",
        "cp{i}.scale",
        "cp{i}.scale = value",
    ),
    "property that hides an attribute later": Read(
        "class Ph{i}: pass\nph{i} = Ph{i}(); ph{i}.scale = {v}",
        "ph{i}.scale",
        "Ph{i}.scale = property(lambda self: value)",
    ),
    "call that is possible later": Read(
        "class Cl{i}: pass\ncl{i} = Cl{i}()", "(2.0 if callable(cl{i}) else {v})", "Cl{i}.__call__ = lambda self: 1"
    ),
    "truth that is told later": Read(
        "class Tr{i}: pass\ntr{i} = Tr{i}()", "(2.0 if tr{i} else {v})", "Tr{i}.__bool__ = lambda self: value > 5"
    ),
    "equality that is told later": Read(
        "class Eq{i}: pass\neq{i}, er{i} = Eq{i}(), Eq{i}()",
        "(2.0 if eq{i} == er{i} else {v})",
        "Eq{i}.__eq__ = lambda self, other: True",
    ),
    "every attribute that is computed later": Read(
        "class Ga{i}: pass\nga{i} = Ga{i}(); ga{i}.scale = {v}",
        "ga{i}.scale",
        "Ga{i}.__getattribute__ = lambda self, name: value if name == 'scale' else object.__getattribute__(self, name)",
    ),
    "class that is registered later": Read(
        "import abc\nclass Ab{i}(abc.ABC): pass\nclass Ac{i}: pass\nac{i} = Ac{i}()",
        "(2.0 if isinstance(ac{i}, Ab{i}) else {v})",
        "Ab{i}.register(Ac{i})",
    ),
    "class that is registered later with one of Python's": Read(
        "import collections.abc\nclass Ad{i}: pass\nad{i} = Ad{i}()",
        "(2.0 if isinstance(ad{i}, collections.abc.Sequence) else {v})",
        "collections.abc.Sequence.register(Ad{i})",
    ),
    "class that is registered later with a derived one": Read(
        "import collections.abc\nclass Ae{i}: pass\nae{i} = Ae{i}()",
        "(2.0 if isinstance(ae{i}, collections.abc.Collection) else {v})",
        "collections.abc.MutableSequence.register(Ae{i})",
    ),
    "method of tensors": Read("", "x.sigmoid()", "torch.Tensor.sigmoid = lambda self: self * value"),
    "operator of tensors": Read("", "(x ** 2)", "torch.Tensor.__pow__ = lambda self, k: self * (value * k)"),
    "attribute that the class of tensors gets": Read(
        "", "getattr(torch.Tensor, 'scale_{i}', {v})", "torch.Tensor.scale_{i} = value"
    ),
    "what a method of tensors reads": Read(
        "tm{i} = {v}\ntorch.Tensor.scaled_{i} = lambda self: self * tm{i}",
        "x.scaled_{i}()",
        "global tm{i}; tm{i} = value",
    ),
    "value of an enum, in place": Read(
        "class Ev{i}(enum.Enum):\n    A = (1.0, [{v}])", "Ev{i}.A.value[1][0]", "Ev{i}.A.value[1][0] = value"
    ),
    "what a copy is": Read(
        "import copy\nclass Co{i}:\n    def __init__(self, v=1.0): self.scale, self.other = v, {v}\n"
        "    def __deepcopy__(self, memo): return Co{i}(self.other)\ncp{i} = Co{i}()",
        "copy.deepcopy(cp{i}).scale",
        "cp{i}.other = value",
    ),
    "decimal numbers": Read(
        "import decimal\ndc{i} = decimal.Decimal(10)",
        "float(dc{i} / 7) * {v}",
        "decimal.getcontext().prec = 2 + int(abs(value) * 4)",
    ),
    "arguments of a pattern": Read(
        "class Pa{i}:\n    __match_args__ = ('a', 'b')\npa{i} = Pa{i}(); pa{i}.a = {v}; pa{i}.b = 7.0\n"
        "def pat{i}():\n    match pa{i}:\n        case Pa{i}(found, _): return found",
        "pat{i}()",
        "Pa{i}.__match_args__ = ('b', 'a')",
    ),
    "dtype of autocast": Read(
        "",
        "(2.0 if torch.get_autocast_dtype('cpu') == torch.float16 else {v})",
        "torch.set_autocast_dtype('cpu', torch.float16)",
    ),
    "member of a class that becomes a descriptor": Read(
        "class Dm{i}: scale = {v}\nclass Hm{i}: held = Dm{i}()\nhm{i} = Hm{i}()",
        "hm{i}.held.scale",
        "Dm{i}.__get__ = lambda *_: types.SimpleNamespace(scale=value)",
    ),
    "attribute that a descriptor hides later": Read(
        "class Ds{i}: pass\nclass Hs{i}: held = Ds{i}()\nhs{i} = Hs{i}()\n"
        "hs{i}.held = types.SimpleNamespace(scale={v})",
        "hs{i}.held.scale",
        "Ds{i}.__get__ = lambda *_: types.SimpleNamespace(scale=value); Ds{i}.__set__ = lambda *_: None",
    ),
    "partial method": Read(
        "class Pm{i}:\n    def both(self, k): return self.v * k\n    twice = functools.partialmethod(both, 2.0)\n"
        "pm{i} = Pm{i}(); pm{i}.v = {v}",
        "pm{i}.twice()",
        "pm{i}.v = value",
    ),
    "module that is appended": Read(
        "sq{i} = torch.nn.Sequential(torch.nn.Identity())", "len(sq{i})", "sq{i}.append(torch.nn.Tanh())"
    ),
    "layers one after the other": Read(
        "ml{i} = torch.nn.ModuleList([torch.nn.Identity()])",
        "sum((2.0 if isinstance(m, torch.nn.Identity) else 3.0) for m in ml{i})",
        "ml{i}.append(torch.nn.Tanh())",
    ),
    "child of a module of one's own": Read(
        "class Mo{i}(torch.nn.Module): pass\nmo{i} = Mo{i}(); mo{i}.a = torch.nn.Tanh()",
        "len(list(mo{i}.children()))",
        "mo{i}.b = torch.nn.Tanh()",
    ),
    "buffer that a module gets": Read(
        "bu{i} = torch.nn.ReLU()",
        "(2.0 if hasattr(bu{i}, 'mask') else {v})",
        "bu{i}.register_buffer('mask', torch.ones(2))",
    ),
    "getattr by another name": Read(
        "gx{i} = getattr; gy{i} = types.SimpleNamespace(scale={v}); gz{i} = 'ale'",
        "gx{i}(gy{i}, 'sc' + gz{i})",
        "gy{i}.scale = value",
    ),
    "getattr in a partial": Read(
        "ga{i} = types.SimpleNamespace(scale={v}); gb{i} = functools.partial(getattr, ga{i}); gc{i} = 'scale'",
        "gb{i}(gc{i})",
        "ga{i}.scale = value",
    ),
    "method by a computed name": Read(
        "import operator\nmk{i} = {v}\nclass Mn{i}:\n    def scale(self): return mk{i}\nmn{i} = Mn{i}()",
        "operator.methodcaller('sc' + 'ale')(mn{i})",
        "global mk{i}; mk{i} = value",
    ),
    "attribute in a text": Read(
        "at{i} = types.SimpleNamespace(scale={v}); au{i} = '{{0.scale}}'",
        "float(au{i}.format(at{i}))",
        "at{i}.scale = value",
    ),
    "class around a function": Read(
        "class Cx{i}:\n    scale = {v}\n    @staticmethod\n    def get(): return __class__.scale\ncx{i} = Cx{i}.get",
        "cx{i}()",
        "cx{i}.__closure__[0].cell_contents.scale = value",
    ),
    "special method of a list": Read("sl{i} = [1]\nsm{i} = sl{i}.__len__", "sm{i}()", "sl{i}.append(value)"),
    "special method of an object": Read(
        "so{i} = types.SimpleNamespace(scale={v}); sp{i} = so{i}.__getattribute__",
        "sp{i}('scale')",
        "so{i}.scale = value",
    ),
    "special method of a function": Read(
        "sv{i} = {v}\ndef sf{i}(): return sv{i}\nsc{i} = sf{i}.__call__", "sc{i}()", "global sv{i}; sv{i} = value"
    ),
    "generic class": Read(
        "import typing\nclass Ge{i}(typing.Generic[typing.TypeVar('T')]): scale = {v}\nge{i} = Ge{i}[int]",
        "ge{i}.scale",
        "Ge{i}.scale = value",
    ),
    "generic class of Python's": Read(
        "class Gf{i}:\n    scale = {v}\n    __class_getitem__ = classmethod(types.GenericAlias)\ngf{i} = Gf{i}[int]",
        "gf{i}().scale",
        "Gf{i}.scale = value",
    ),
    "attribute of a partial": Read(
        "ap{i} = functools.partial(max, 1); ap{i}.scale = {v}", "ap{i}.scale", "ap{i}.scale = value"
    ),
    "attribute of a cached function": Read(
        "@functools.cache\ndef ac{i}(): return 1.0\nac{i}.scale = {v}", "ac{i}.scale", "ac{i}.scale = value"
    ),
    "attribute of a logger": Read(
        "import logging\nal{i} = logging.getLogger('al{i}'); al{i}.scale = {v}", "al{i}.scale", "al{i}.scale = value"
    ),
    "attribute of an array of a class": Read(
        "class Aa{i}(numpy.ndarray): pass\naa{i} = numpy.zeros(2).view(Aa{i}); aa{i}.scale = {v}",
        "aa{i}.scale",
        "aa{i}.scale = value",
    ),
    "method of an array of a class": Read(
        "ag{i} = {v}\nclass Am{i}(numpy.ndarray):\n    def scale(self): return ag{i}\n"
        "am{i} = numpy.zeros(2).view(Am{i})",
        "am{i}.scale()",
        "global ag{i}; ag{i} = value",
    ),
    "attribute of a weak reference": Read(
        "import weakref\nclass Wk{i}(weakref.ref): pass\nwk{i} = Wk{i}(Wk{i}); wk{i}.scale = {v}",
        "wk{i}.scale",
        "wk{i}.scale = value",
    ),
    "attribute of a property": Read(
        "class Pp{i}(property):\n    def __get__(self, of, cls): return self if of is None else self.k\n"
        "class Pq{i}:\n    scale = Pp{i}()\npq{i} = Pq{i}(); Pq{i}.scale.k = {v}",
        "pq{i}.scale",
        "Pq{i}.scale.k = value",
    ),
    "dict behind the first of a chain": Read(
        "ch{i} = collections.ChainMap({{'a': 1.0}}, {{'a': {v}}})", "ch{i}.maps[1]['a']", "ch{i}.maps[1]['a'] = value"
    ),
    "base that a class gets": Read(
        "class Ba{i}: pass\nclass Bb{i}: pass\nclass Bc{i}(Ba{i}): pass\nbc{i} = Bc{i}()",
        "(2.0 if isinstance(bc{i}, Bb{i}) else {v})",
        "Bc{i}.__bases__ = (Ba{i}, Bb{i})",
    ),
    "subclass that a class gets": Read(
        "class Su{i}: pass", "len(Su{i}.__subclasses__())", "global kept{i}; kept{i} = type('Sv', (Su{i},), {{}})"
    ),
    "attribute of a subclass": Read(
        "class Sw{i}: pass\nclass Sx{i}(Sw{i}): scale = {v}",
        "sum(each.scale for each in Sw{i}.__subclasses__())",
        "Sx{i}.scale = value",
    ),
    "operator that is an object": Read(
        "class Oo{i}:\n    v = {v}\n    def __call__(self, *given): return self.v\n"
        "class Op{i}:\n    __mul__ = Oo{i}()\nop{i} = Op{i}()",
        "(op{i} * 2)",
        "Op{i}.__mul__.v = value",
    ),
    "class that an object says it is of": Read(
        "ic{i} = int\nclass Is{i}:\n    @property\n    def __class__(self): return ic{i}\nis{i} = Is{i}()",
        "(2.0 if isinstance(is{i}, int) else {v})",
        "global ic{i}; ic{i} = str",
    ),
    "built-ins of a function": Read(
        "bs{i} = {{'__builtins__': {{'len': lambda value: {v}}}}}\nexec('def get(): return len(1)', bs{i})\n"
        "bg{i} = bs{i}['get']",
        "bg{i}()",
        "bs{i}['__builtins__']['len'] = lambda _: value",
    ),
}  # fmt: skip


@contextmanager
def undone() -> Iterator[None]:
    """Set back, at the end of the block, what changes leave in torch and Python."""
    members = dict(vars(torch.Tensor))
    try:
        yield
    finally:
        torch.set_grad_enabled(True)
        torch.set_autocast_dtype("cpu", torch.bfloat16)
        decimal.setcontext(decimal.Context())
        for name in [name for name in vars(torch.Tensor) if name not in members]:
            delattr(torch.Tensor, name)
        for name, member in members.items():
            if vars(torch.Tensor)[name] is not member:
                setattr(torch.Tensor, name, member)


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
