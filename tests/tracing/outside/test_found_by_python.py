"""What Python finds by itself, and what two lines share: it is guarded, or the function is left to itself."""

import types

import pytest
import torch

import opwright

PREAMBLE = "import array, enum, types, typing, torch\n"
# Each with the change that a call must see.
PROGRAMS = {
    "method that an enum looks for": (
        "K = 2.0\nclass Mode(enum.Enum):\n    A = 1.5\n    B = 3.0\n"
        "    @classmethod\n    def _missing_(cls, value): return cls.A if K < 2.5 else cls.B\n"
        "def f(x): return x * Mode('none of them').value",
        "K = 3.0",
    ),
    "keys that a call looks for": (
        "K = ['a']\nclass Config:\n    def keys(self): return K\n    def __getitem__(self, name): return 2.0\n"
        "CONFIG = Config()\ndef g(a=1.0, b=1.0): return a * b\ndef f(x): return x * g(**CONFIG)",
        "K.append('b')",
    ),
    "keys that a dict looks for": (
        "K = ['a']\nclass Config:\n    def keys(self): return K\n    def __getitem__(self, name): return 2.0\n"
        "CONFIG = Config()\ndef f(x): return x * len(dict(CONFIG))",
        "K.append('b')",
    ),
    "attribute that a protocol asks for": (
        "@typing.runtime_checkable\nclass HasScale(typing.Protocol):\n    scale: float\n"
        "class Config: pass\nCONFIG = Config()\ndef f(x): return x * (2.0 if isinstance(CONFIG, HasScale) else 3.0)",
        "CONFIG.scale = 1.0",
    ),
    "values of an enum that is gone through": (
        "class Mode(enum.Enum):\n    A = [1.5]\n    B = [3.0]\n"
        "def f(x): return x * sum(each.value[0] for each in Mode)",
        "Mode.B.value[0] = 7.0",
    ),
    "value of an enum by its name": (
        "class Mode(enum.Enum):\n    A = [1.5]\nNAME = 'A'\ndef f(x): return x * Mode[NAME].value[0]",
        "Mode.A.value[0] = 7.0",
    ),
    "array of a class that a helper names first": (
        "FLAG = False\nclass C: held = array.array('d', [1.5])\ndef a_helper(): return C.held[0]\n"
        "def f(x):\n    if FLAG: return x * a_helper()\n    return x * C.held[0]",
        "C.held[0] = 7.0",
    ),
    "array of a module that a helper names first": (
        "FLAG = False\nM = types.ModuleType('a_module')\nM.held = array.array('d', [1.5])\n"
        "def a_helper(): return M.held[0]\ndef f(x):\n    if FLAG: return x * a_helper()\n    return x * M.held[0]",
        "M.held[0] = 7.0",
    ),
    "array of a class in an object that a helper names first": (
        "FLAG = False\nclass C: held = array.array('d', [1.5])\nclass D: inner = C\nOBJECT = D()\n"
        "def a_helper(): return OBJECT.inner.held[0]\n"
        "def f(x):\n    if FLAG: return x * a_helper()\n    return x * D.inner.held[0]",
        "C.held[0] = 7.0",
    ),
    "array of the function itself": (
        "def f(x): return x * f.held[0]\nf.held = array.array('d', [1.5])",
        "f.held[0] = 7.0",
    ),
    "array of a helper": (
        "FLAG = False\ndef helper(): return 1.0\nhelper.held = array.array('d', [1.5])\n"
        "def a_helper(): return helper.held[0]\n"
        "def f(x):\n    if FLAG: return x * a_helper()\n    return x * helper.held[0]",
        "helper.held[0] = 7.0",
    ),
    "call of every module": (
        "LAYER = torch.nn.ReLU()\ndef f(x): return LAYER(x) * 2",
        "torch.nn.Module.__call__ = lambda self, x: x * 3",
    ),
    "forward behind the call of every module": (
        "LAYER = torch.nn.ReLU()\ndef f(x): return LAYER(x) * 2",
        "torch.nn.Module._call_impl = lambda self, x: x * 3",
    ),
}


@pytest.mark.falls_back
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_change_is_seen_by_a_call(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for method in ("__call__", "_call_impl"):
        monkeypatch.setattr(torch.nn.Module, method, getattr(torch.nn.Module, method))
    text, change = PROGRAMS[name]
    module = types.ModuleType("a_file")
    exec(PREAMBLE + text, vars(module))
    function = vars(module)["f"]
    operator = opwright.operator(function)
    x = torch.tensor([1.0, 2.0])
    for _ in range(3):
        before = operator(x)
        assert torch.equal(before, function(x))
    exec(change, vars(module))
    expected = function(x)
    assert not torch.equal(before, expected)
    for _ in range(2):
        assert torch.equal(operator(x), expected)
