"""What it costs to compare, at every call, what a function reads outside of its arguments.

python benchmarks/outside.py [--json FILE]

Each function runs on the hot path twice, in turns: with its guards, and without any. The first reads nothing that
anybody changes: the names of torch's modules.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import torch
from scorecard import Options, Row, Scorecard, Target, medians_us, run_script

import opwright
from opwright.binding.native import native
from opwright.binding.tape import Tape
from opwright.settings import Settings
from opwright.tracing.outside.guard import count

MOST_OF_A_CALL = 1.03
MOST_NS_A_VALUE = 50.0
NOTHING = "names of torch only"
_CALLS = 20  # in one measured piece: a call is shorter than what the stopwatch costs


class Holder:
    """An object with an attribute."""

    scale = 3.0

    def __init__(self) -> None:
        self.own = 2.0


def _namespace() -> dict[str, Any]:
    """What the functions read; a module, as it would be in a file of a user's."""
    settings = types.ModuleType("settings")
    vars(settings).update({f"S{k}": float(k) for k in range(4)})
    module = sys.modules["read_by_benchmark"] = types.ModuleType("read_by_benchmark")
    found = {
        **{f"G{k}": float(k) for k in range(4)},
        "torch": torch,
        "Tensor": torch.Tensor,
        "opwright": opwright,
        "settings": settings,
        "holder": Holder(),
        "names": {"a": 1.0, "b": 2.0},
        "numbers": [1.0, 2.0, 3.0],
        "pair": (1.5, 2.5),
        "current": ContextVar("c"),
        "dropout": torch.nn.Dropout(0.5).eval(),
        "stack": torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh()),
    }
    found["current"].set(2.0)
    exec("def helper(x):\n    return x * G0\n", vars(module) | {"G0": 2.0})
    vars(module).update(found)
    return vars(module)


KINDS = {
    NOTHING: "torch.tanh(x) * torch.sigmoid(y)",
    "4 numbers of the module": "torch.tanh(x) * torch.sigmoid(y) * G0 + G1 * G2 - G3",
    "4 numbers of another module": (
        "torch.tanh(x) * torch.sigmoid(y) * settings.S0 + settings.S1 * settings.S2 - settings.S3"
    ),
    "built-in functions": "torch.tanh(x) * torch.sigmoid(y) * float(len(x.shape)) * max(1, x.ndim)",
    "attributes of an object": "torch.tanh(x) * torch.sigmoid(y) * holder.own * holder.scale",
    "a dictionary": "torch.tanh(x) * torch.sigmoid(y) * names['a'] * names['b']",
    "a list": "torch.tanh(x) * torch.sigmoid(y) * numbers[0] * numbers[1]",
    "a tuple": "torch.tanh(x) * torch.sigmoid(y) * pair[0] * pair[1]",
    "a context variable": "torch.tanh(x) * torch.sigmoid(y) * current.get()",
    "gradient mode": "torch.tanh(x) * torch.sigmoid(y) * (2.0 if torch.is_grad_enabled() else 3.0)",
    "a module with nothing in it": "torch.tanh(x) * torch.sigmoid(y) * dropout(x)",
    "a module with children": "torch.tanh(x) * torch.sigmoid(y) * stack(x)",
}


class _Unguarded:
    guards = None


class _Given:
    """Takes the extension module."""

    module: Any = None

    def equip(self, module: Any) -> None:
        """Keep it."""
        self.module = module


def measure(options: Options) -> Scorecard:
    """Time each kind, with its guards and without."""
    given = _Given()
    native.equip(given, Settings.from_environment())
    native.wait(100)
    assert given.module is not None, "the hot path in C++ is not there"
    rows = [_row(kind, body, given.module, options) for kind, body in KINDS.items()]
    targets = [Target("a call that reads nothing, with guards / without", _quotient(rows[0]), "<=", MOST_OF_A_CALL)]
    targets += [
        Target(f"{row.name}: a value", row.figures["ns a value"] or 0.0, "<=", MOST_NS_A_VALUE, " ns")
        for row in rows[1:]
    ]
    return Scorecard("guards on the hot path: one call on 8 elements", rows, targets)


def _quotient(row: Row) -> float:
    call, guards = row.figures["operator, ns"] or 0.0, row.figures["guards, ns"] or 0.0
    return call / (call - guards)


def _row(kind: str, body: str, module: Any, options: Options) -> Row:
    namespace = _namespace()
    name = "reads_" + "".join(letter if letter.isalnum() else "_" for letter in kind)
    exec(compile(f"def {name}(x: Tensor, y: Tensor) -> Tensor:\n    return {body}\n", f"<{kind}>", "exec"), namespace)
    operator = opwright.operator(namespace[name])
    x, y = torch.ones(8), torch.ones(8)
    for _ in range(3):
        operator(x, y)
    assert operator.last_rung == "cpp", f"{kind}: served by {operator.last_rung}"
    variants = operator._variants.now()
    guarded = Tape(module, variants.by_call, name, 2, variants.state)
    bare = Tape(module, variants.by_call, name, 2, _Unguarded())  # type: ignore[arg-type]
    assert guarded.play is not None
    assert bare.play is not None
    ways = {"tape": _many(guarded.play, x, y), "bare tape": _many(bare.play, x, y), "operator": _many(operator, x, y)}
    ns = {way: us * 1000 / _CALLS for way, us in medians_us(ways, options).items()}
    values, guards = count(variants.state._reads.guard), ns["tape"] - ns["bare tape"]
    return Row(
        kind,
        {
            "values": values,
            "operator, ns": ns["operator"],
            "tape without, ns": ns["bare tape"],
            "guards, ns": guards,
            "ns a value": guards / values,
        },
    )


def _many(call: Callable[..., Any], x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
    def run() -> None:
        for _ in range(_CALLS):
            call(x, y)

    return run


if __name__ == "__main__":
    run_script(measure, __doc__)
