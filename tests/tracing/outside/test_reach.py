"""What a function reads from outside: every change is seen, in Python and in C++, and what stays the same stays."""

import contextlib
import datetime
import decimal
import functools
import sys
import types

import pytest

import opwright
from opwright.binding.variants.states import Outside, State
from opwright.tracing.outside.guard import Fetch, count, first_failing
from opwright.tracing.outside.plain import are_same
from opwright.tracing.outside.reach import _walked, reads_of
from opwright.tracing.outside.unasked import ABSENT
from opwright.tracing.outside.walk import Walk
from tests.outside_program import READS, VALUES, undone

PREAMBLE = (
    "import collections, contextvars, dataclasses, enum, functools, os, sys, types, time, random, numpy, torch\n"
    "import torch.nn.functional as F\n"
)


def made(text, **names):
    """The function `f` of a text, in a module of the user's own."""
    namespace = vars(types.ModuleType("a_file")) | names
    exec(PREAMBLE + text, namespace)
    return namespace["f"]


def identity(function):
    return State(function, reads_of(function)).identity


def test_walks_that_take_turns_come_to_an_end():
    """One that looks at every name may meet nothing that reads names at run time, and one that does not may."""

    class Turning(Walk):
        def describe(self, value, way):
            self.met_dynamic = not self.every_name
            return self.same(value, way)

    def make(names, every_name, asked):
        walks.append(every_name)
        assert len(walks) < 10
        return Turning(names, every_name, asked, frozenset(), frozenset(), None)

    walks = []
    _walked(made("def f(x): return x"), make)
    assert walks == [False, True]


@pytest.mark.parametrize("kind", READS)
def test_a_change_is_seen_in_python_and_in_cpp(kind, extension, monkeypatch):
    read, fill = READS[kind], {"i": 0, "v": "1.5"}
    before = f"    {read.before.format(**fill)}\n" if read.before else ""
    text = (
        f"{read.setup.format(**fill)}\ndef f(x):\n{before}    return x * ({read.read.format(**fill)})\n"
        f"def change(value):\n    {read.change.format(**fill)}\n"
    )
    module = types.ModuleType(f"a_file_{list(READS).index(kind)}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # where data classes look for it
    namespace = vars(module)
    with undone():
        exec(PREAMBLE + text, namespace)
        function = namespace["f"]
        reads = reads_of(function)
        assert not reads.hazards
        guards = extension.Guards(reads.guard.spec, function, ABSENT, are_same)
        assert first_failing(reads.guard, function) is None
        assert guards.hold()
        namespace["change"](0.25)
        assert first_failing(reads.guard, function) is not None
        assert not guards.hold()
        again = reads_of(function)
        assert extension.Guards(again.guard.spec, function, ABSENT, are_same).hold()


def test_a_module_of_the_user_may_have_the_name_of_one_of_python(monkeypatch):
    module = types.ModuleType("profile")
    module.__file__ = "/home/me/profile.py"
    monkeypatch.setitem(sys.modules, "profile", module)
    exec("K = 1.0\ndef get(): return K\ndef f(x): return x * get()", vars(module))
    reads = reads_of(module.f)
    module.K = 2.0
    assert first_failing(reads.guard, module.f).label == "global 'K'"


def test_lists_of_python_are_compared(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["a"])
    function = made("def f(x): return x * len(sys.argv)")
    reads = reads_of(function)
    assert first_failing(reads.guard, function) is None
    sys.argv.append("b")
    assert first_failing(reads.guard, function) is not None


@pytest.mark.parametrize(("error", "is_raised"), [(ValueError, False), (KeyboardInterrupt, True)])
def test_an_interruption_is_no_answer(error, is_raised, extension):
    def raising(value, expected):
        raise error

    function = made("K = b'ab'\ndef f(x): return x * len(K)")
    reads = reads_of(function)  # which owns what the guards compare with
    guards = extension.Guards(reads.guard.spec, function, ABSENT, raising)
    function.__globals__["K"] = bytes(bytearray(b"ab"))
    with pytest.raises(error) if is_raised else contextlib.nullcontext():
        assert not guards.hold()


def test_values_live_while_they_are_compared(extension):
    def taking_away(value, expected):
        function.__globals__["K"] = None  # which held the last references
        return are_same(value, expected)

    function = made("K = [(1, b'ab'), (2, b'cd'), (3, b'ef')]\ndef f(x): return x * K[0][0] * K[1][0] * K[2][0]")
    spec = reads_of(function).guard.spec
    for _ in range(3):
        function.__globals__["K"] = [(k, bytes(bytearray(b))) for k, b in ((1, b"ab"), (2, b"cd"), (3, b"ef"))]
        assert extension.Guards(spec, function, ABSENT, taking_away).hold()


HELPER = "def helper(x):\n    return x * {factor}\n"
PAIRS = {
    "body": ("def f(x): return x * 2", "def f(x): return x * 3"),
    "operation": ("def f(x): return x.sin()", "def f(x): return x.cos()"),
    "default": ("def f(x, k=2): return x * k", "def f(x, k=3): return x * k"),
    "sign of zero": ("K = 0.0\ndef f(x): return x * K", "K = -0.0\ndef f(x): return x * K"),
    "int or float": ("K = 1\ndef f(x): return x * K", "K = 1.0\ndef f(x): return x * K"),
    "literal": ("def f(x): return x / 0.0", "def f(x): return x / -0.0"),
    "list": ("K = [1, 2]\ndef f(x): return x * K[0]", "K = [2, 2]\ndef f(x): return x * K[0]"),
    "dict": ("K = {'a': 1}\ndef f(x): return x * K['a']", "K = {'a': 2}\ndef f(x): return x * K['a']"),
    "kinds in a slice": (
        "K = slice(None, 1)\ndef f(x): return x * K.stop",
        "K = slice(None, 1.0)\ndef f(x): return x * K.stop",
    ),
    "end of a long pattern": (
        "import re\nK = re.compile('a' * 300)\ndef f(x): return x * len(K.pattern)",
        "import re\nK = re.compile('a' * 301)\ndef f(x): return x * len(K.pattern)",
    ),
    "flags of a long pattern": (
        "import re\nK = re.compile('a' * 300)\ndef f(x): return x * K.flags",
        "import re\nK = re.compile('a' * 300, re.ASCII)\ndef f(x): return x * K.flags",
    ),
    "end of a long number": (
        "K = 10**5000\ndef f(x): return x * (K % 7)",
        "K = 10**5000 + 1\ndef f(x): return x * (K % 7)",
    ),
    "end of a long pattern in an enum": tuple(
        f"import re\nclass E(enum.Enum):\n    A = re.compile('a' * {length})\n"
        "def f(x): return x * len(E.A.value.pattern)"
        for length in (300, 301)
    ),
    "order of a frozen set": tuple(
        f"K = frozenset({list(order)})\ndef f(x):\n    for k in K: x = x * k + 1\n    return x"
        for order in ((8, 0), (0, 8))
    ),
    "order of a set": tuple(
        f"K = set({list(order)})\ndef f(x):\n    for k in K: x = x * k + 1\n    return x" for order in ((8, 0), (0, 8))
    ),
    "order of a set in the code": tuple(
        f"def f(x):\n    for k in {{{order}}}: x = x * k + 1\n    return x" for order in ("8, 0, 16", "0, 16, 8")
    ),
    "dtype": ("K = torch.half\ndef f(x): return x.to(K)", "K = torch.float\ndef f(x): return x.to(K)"),
    "helper": (
        HELPER.format(factor=2) + "def f(x): return helper(x)",
        HELPER.format(factor=3) + "def f(x): return helper(x)",
    ),
    "inner function": (
        "def f(x):\n    def g(y): return y * 2\n    return g(x)",
        "def f(x):\n    def g(y): return y * 3\n    return g(x)",
    ),
    "method": (
        "class A:\n    def m(self, x): return x * 2\na = A()\ndef f(x): return a.m(x)",
        "class A:\n    def m(self, x): return x * 3\na = A()\ndef f(x): return a.m(x)",
    ),
    "under vmap": (
        "def g(x): return x * 2\nv = torch.vmap(g)\ndef f(x): return v(x)",
        "def g(x): return x * 3\nv = torch.vmap(g)\ndef f(x): return v(x)",
    ),
    "own derivative": (
        "class D(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x): return x * 2\n"
        "def f(x): return D.apply(x)",
        "class D(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x): return x * 3\n"
        "def f(x): return D.apply(x)",
    ),
}


@pytest.mark.parametrize("what", PAIRS)
def test_records_are_told_apart(what):
    left, right = map(identity, map(made, PAIRS[what]))
    assert None not in (left, right)
    assert left != right


@pytest.mark.parametrize("what", PAIRS)
def test_the_same_text_elsewhere_is_the_same(what):
    assert identity(made(PAIRS[what][0])) == identity(made("\n\n# moved\n" + PAIRS[what][0]))


HAZARDS = {
    "clock": ("def f(x): return x * time.time()", "time.time"),
    "random": ("def f(x): return x * random.random()", "random.random"),
    "random of NumPy": ("def f(x): return x * float(numpy.random.rand())", "numpy.random.rand"),
    "file": ("def f(x): return x * float(open('a').read())", "open()"),
    "computed name": ("def f(x, n='A'): return x * float(os.environ[n])", "an environment variable"),
    **{
        f"computed as {key}": (f"def f(x, n='A'): return x * float({key})", "an environment variable")
        for key in (
            *("os.environ['A' + n]", "os.environ[f'A{n}']", "os.environ['A %s' % n]", "os.environ['a'.upper()]"),
            *("os.environ.get('A' + n)", "os.environ.get('A'.join(n), '1')", "os.getenv('A' * n, 1)"),
            *("os.environb[b'A']", "os.getenvb(b'A')"),
        )
    },
    "seed": ("def f(x): return x * torch.initial_seed()", "torch.initial_seed"),
    "module by a name": ("def f(x): return x * sys.modules['a_file'].K", "sys.modules, a dict"),
    "thread-local": ("import threading\nK = threading.local()\ndef f(x): return x * K.scale", "'K', a _local"),
    "what lies there": (
        "import pathlib\nK = pathlib.Path('a')\ndef f(x): return x * K.exists()",
        "'K', a PosixPath",
    ),
    "what exists": ("def f(x): return x * os.path.exists('a')", "os.path.exists"),
    "variable in a text": ("def f(x): return x * float(os.path.expandvars('$A'))", "os.path.expandvars"),
    "variable by bytes": ("def f(x): return x * float(os.environb[b'A'])", "an environment variable"),
    "variable of a prefix": ("def f(x, g=dict.get): return x * g(os.environ, 'A' + 'B')", "an environment variable"),
    "errors of NumPy": ("def f(x): return x * len(numpy.geterr())", "numpy.geterr"),
    "many": ("K = list(range(100))\ndef f(x): return x * K[0]", "'K', a list of 100 members"),
    "field of a record": (
        "K = numpy.zeros((), [('a', 'f8')])[()]\ndef f(x): return x * float(K['a'])",
        "'K', a void",
    ),
    "record of a record array": (
        "K = numpy.rec.array([(1.0,)], dtype=[('a', 'f8')])[0]\ndef f(x): return x * float(K.a)",
        "'K', a record",
    ),
    "names of fields": (
        "K = numpy.dtype([('a', 'f8')])\ndef f(x): return x * len(K.names[0])",
        "'K', a VoidDType",
    ),
    "what a dtype carries": (
        "K = numpy.dtype('f8', metadata={'scale': [2.0]})\ndef f(x): return x * K.metadata['scale'][0]",
        "'K', a Float64DType",
    ),
    "time zone of the user's": (
        "import datetime\nclass Z(datetime.tzinfo):\n    def utcoffset(self, at): return datetime.timedelta(hours=1)\n"
        "K = datetime.datetime(2020, 1, 1, tzinfo=Z())\ndef f(x): return x * K.utcoffset().seconds",
        "'K', a datetime",
    ),
    "counter": ("import itertools\nK = itertools.count()\ndef f(x): return x * next(K)", "'K', a count"),
}


def test_a_sentinel_is_told_by_which_it_is():
    function = made("NONE = object()\nALSO = NONE\ndef f(x, k=NONE): return x * 2 if k is ALSO else x")
    reads = reads_of(function)
    assert reads.hazards == ()
    assert first_failing(reads.guard, function) is None
    assert identity(function) == identity(
        made("NONE = object()\nALSO = NONE\n\n" + "def f(x, k=NONE): return x * 2 if k is ALSO else x")
    )
    other = made("NONE = object()\nALSO = object()\ndef f(x, k=NONE): return x * 2 if k is ALSO else x")
    assert identity(other) != identity(function)
    function.__globals__["ALSO"] = object()
    assert first_failing(reads.guard, function).label == "global 'ALSO'"


@pytest.mark.parametrize("what", HAZARDS)
def test_what_cannot_be_compared_is_told(what):
    text, named = HAZARDS[what]
    hazards = reads_of(made(text)).hazards
    assert any(named in hazard.fact for hazard in hazards), hazards


def test_a_frozen_name_is_not_compared():
    function = made("K = list(range(100))\ndef f(x): return x * K[0]")
    reads = reads_of(function, frozenset({"K"}))
    assert not reads.hazards
    function.__globals__["K"] = None
    assert first_failing(reads.guard, function) is None


@pytest.mark.parametrize(
    "text",
    [
        "def f(x): return torch.tanh(x) * F.silu(x)",
        "import math\ndef f(x): return x * math.pi",
        "def f(x): return x.to(torch.float64)",
    ],
)
def test_libraries_are_compared_by_name_alone(text):
    assert count(reads_of(made(text)).guard) <= 12


def test_shared_objects_do_not_multiply_the_work():
    text = "def g0(x): return x\n" + "".join(f"def g{k}(x): return g{k - 1}(x) + g{k - 1}(x)\n" for k in range(1, 40))
    assert count(reads_of(made(text + "def f(x): return g39(x) + g38(x)")).guard) < 400


def test_cycles_end():
    text = "class A: pass\na = A(); a.self = a; a.k = 2.0\ndef f(x, again=True): return f(x * a.self.k, False)"
    assert count(reads_of(made(text)).guard) < 40


def test_states_are_found_again_and_end():
    function = made("K = 0\ndef f(x): return x * K")
    outside = Outside(function)
    first = outside.now()
    function.__globals__["K"] = 1
    assert outside.now() is not first
    function.__globals__["K"] = 0
    assert outside.now() is first


@pytest.mark.parametrize("value", VALUES)
def test_equal_values_that_are_other_objects_are_the_same(value):
    function = made(f"K = [({value}, 'a')]\ndef f(x): return x * K[0][0]")
    reads = reads_of(function)
    function.__globals__["K"] = [(float(value), "".join(["a"]))]
    assert first_failing(reads.guard, function) is None


@pytest.mark.parametrize(
    "number",
    [
        "hash('a')",
        "id(torch)",
        "len([*set('ab')][0])",
        "ord([*{n for n in 'ab'}][0])",
        "ord([*{'a', 'b'}][0])",
        "ord([*({'a': 1, 'b': 2}.keys() - {'c'})][0])",
        "ord([*frozenset.union(K, K)][0])",
    ],
)
def test_what_another_process_answers_otherwise_is_not_recorded(number):
    assert identity(made(f"K = frozenset('a')\ndef f(x): return x * ({number} % 3)")) is None


@pytest.mark.parametrize("number", ["sum(v for k, v in K.items())", "len(K.keys())", "('a' in K.keys())"])
def test_a_dictionary_has_the_same_order_in_another_process(number):
    assert identity(made(f"K = {{'a': 1, 'b': 2}}\ndef f(x): return x * {number}")) is not None


def test_the_order_of_a_set_does_not_count_where_it_is_only_asked():
    text = "K = {kind}({order})\ndef f(x, y=1): return x * 2 if y in K else x"
    for kind in ("set", "frozenset"):
        left, right = (identity(made(text.format(kind=kind, order=order))) for order in ((8, 0), (0, 8)))
        assert left is not None
        assert left == right
        assert left != identity(made(text.format(kind=kind, order=(8, 1))))


def test_an_int_of_a_class_without_a_module_has_attributes_that_are_compared_or_not_read():
    namespace = {}
    exec("class A(int): pass", namespace)
    assert namespace["A"].__module__ == "builtins"
    number = namespace["A"](1)
    number.scale = 2.0
    function = made("def f(x): return x * K.scale", K=number)
    reads = reads_of(function)
    number.scale = 3.0
    assert reads.hazards or first_failing(reads.guard, function) is not None


def test_a_nan_is_itself_and_not_its_negative(extension):
    function = made("K = float('nan')\ndef f(x): return torch.copysign(x, K)")
    reads = reads_of(function)
    guards = extension.Guards(reads.guard.spec, function, ABSENT, are_same)
    for value, is_same in ((float("nan"), True), (-float("nan"), False), (1.0, False), (float("nan"), True)):
        function.__globals__["K"] = value
        assert (first_failing(reads.guard, function) is None, guards.hold()) == (is_same, is_same)
    assert identity(made("K = float('nan')\ndef f(x): return x * K")) != identity(
        made("K = -float('nan')\ndef f(x): return x * K")
    )


@pytest.mark.parametrize(
    ("value", "other"),
    [
        (decimal.Decimal("1.0"), decimal.Decimal("1.00")),
        (range(0, 4, 2), range(0, 3, 2)),
        (0.0, -0.0),
        (1, True),
        (datetime.time(1, fold=0), datetime.time(1, fold=1)),
    ],
    ids=repr,
)
def test_equal_values_that_are_told_apart(value, other, extension):
    assert value == other
    function = made("def f(x): return x * len(str(K))", K=value)
    reads = reads_of(function)
    guards = extension.Guards(reads.guard.spec, function, ABSENT, are_same)
    for now, is_same in ((value, True), (other, False), (value, True)):
        function.__globals__["K"] = now
        assert (first_failing(reads.guard, function) is None, guards.hold()) == (is_same, is_same)


def test_partials_and_bound_methods_are_followed():
    class Holder:
        scale = 2.0

        def run(self, x, k):
            return x * self.scale * k

    holder = Holder()
    function = functools.partial(holder.run, k=2.0)
    reads = reads_of(function)
    holder.scale = 3.0
    failing = first_failing(reads.guard, function)
    assert failing is not None
    assert "scale" in failing.label


LIBRARY = """
import functools
SCALE = 2.0
def set_scale(value):
    global SCALE
    SCALE = value
def scaled(): return SCALE
def decorated(function):
    @functools.wraps(function)
    def wrapper(*args): return function(*args)
    return wrapper
def by_default(function):
    def wrapper(held=function): return held()
    return wrapper
class Lazy:
    def __init__(self, function): self._function = function
    def __call__(self): return self._function()
class Config:
    def __init__(self, **content): self.__dict__["_content"] = content
    def __getattr__(self, name): return self.__dict__["_content"][name]
    def put(self, value): self._content["scale"] = value
"""
OF_LIBRARIES = {
    "decorator": ("K = 2.0\n@lib.decorated\ndef g(): return K", "g()", "global K; K = value"),
    "default": ("K = 2.0\n@lib.by_default\ndef g(): return K", "g()", "global K; K = value"),
    "object with a function": ("K = 2.0\ng = lib.Lazy(lambda: K)", "g()", "global K; K = value"),
    "configuration": ("c = lib.Config(scale=2.0)", "c.scale", "c.put(value)"),
    "subclass": ("class C(lib.Config): pass\nc = C(scale=2.0)", "c.scale", "c.put(value)"),
    "setting": ("", "lib.scaled()", "lib.set_scale(value)"),
    "setting by name": ("scaled = lib.scaled", "scaled()", "lib.set_scale(value)"),
}


@pytest.mark.parametrize("what", OF_LIBRARIES)
def test_what_libraries_hold_of_the_user_s_is_compared(what, tmp_path, monkeypatch):
    setup, read, change = OF_LIBRARIES[what]
    library = types.ModuleType("a_library")
    library.__file__ = str(tmp_path / "site-packages" / "a_library.py")
    monkeypatch.setitem(sys.modules, "a_library", library)
    exec(LIBRARY, vars(library))
    function = made(f"{setup}\ndef f(x): return x * {read}\ndef change(value): {change}", lib=library)
    reads = reads_of(function)
    assert not reads.hazards
    assert first_failing(reads.guard, function) is None
    before = function(1.0)
    function.__globals__["change"](3.0)
    assert function(1.0) != before
    assert first_failing(reads.guard, function) is not None


def test_defaults_of_data_classes_are_found_quickly():
    fields = "\n".join(f"    a{k}: float = {k}.5" for k in range(20))
    function = made(f"class C:\n{fields}\nc = C()\ndef f(x): return x * ({'+'.join(f'c.a{k}' for k in range(20))})")
    pending, fetches = [reads_of(function).guard], []
    while pending:
        fetches.append(pending[-1].fetch)
        pending += pending.pop().guards
    assert fetches.count(Fetch.VIA) <= 2


def test_a_forward_behind_that_of_a_served_module_is_compared():
    function = made("K = 2.0\nclass f(torch.nn.Module):\n    def forward(self, x): return x * K")
    served = type(opwright.module(function()))
    reads = reads_of(served)
    assert first_failing(reads.guard, served) is None
    function.forward.__globals__["K"] = 3.0
    assert first_failing(reads.guard, served) is not None
