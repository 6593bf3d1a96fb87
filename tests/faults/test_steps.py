"""Every function that a call goes through while kernels are found or made raises, one after the other.

By day some of them; at night all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
import torch
from torch import Tensor

from opwright.operator import Operator
from tests.faults.injection import Fault, faults, name_of, sample, steps_of, struck_by
from tests.faults.trial import Subject, problems

pytestmark = [pytest.mark.falls_back, pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")]

# What is there to fall back at all, and so has nobody behind it.
LAST_RESORT = {
    "operator.py": ("__call__", "__init__", "samples", "reference"),
    "binding/server.py": ("serve", "_serve_slowly", "serve_by_reference", "_serve_as_laid_out"),
    "binding/structured.py": ("serve", "serve_by_reference"),
    "binding/mutating.py": ("serve", "serve_by_reference"),
    "binding/own_errors.py": ("is_for_the_caller", "is_wanted"),
    "binding/fallbacks.py": ("tell", "is_strict"),
    "tracing/signature.py": ("bind",),
    "tracing/faults.py": ("fault_of", "refusing_faults"),
}
# The backward passes of nodes, and which operator they ask: lines that derive nothing and run at every call.
NODES = {
    "binding/autograd.py": (
        *("backward", "some_missing", "_run_backward", "_size"),
        *("_arguments", "_intermediates", "_tangents", "zeros", "<listcomp>", "<genexpr>"),
    ),
    "binding/derived_node.py": ("backward", "gradients", "_arguments", "_call", "_drawing", "_nothing", "<listcomp>"),
    "binding/dual_tensors.py": ("backward",),
    "binding/environment.py": ("is_transformed", "is_asked_for", "recording"),
    "binding/safe_transforms.py": ("backward_of", "backward", "_made", "<genexpr>"),
    "binding/step_below.py": ("backward",),
    "binding/variant.py": ("spared", "narrowed", "given", "known", "<listcomp>", "<genexpr>"),
    "operator.py": ("_differentiate", "<listcomp>"),
    "tracing/results.py": ("places",),
}


def two_orders(function: Callable[..., Any]) -> list[Tensor]:
    """Results, gradients, and gradients of these."""
    x, y = (torch.linspace(-1, 1, 20).reshape(4, 5) * scale for scale in (1.0, 0.5))
    x.requires_grad_()
    z = function(x, y)
    (first,) = torch.autograd.grad(z.square().sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    return [z.detach(), first.detach(), second]


def batched_gradients(function: Callable[..., Any]) -> list[Tensor]:
    """Results and gradients of each of a batch, by torch.func, and tangents."""
    x, y = (torch.linspace(-1, 1, 20).reshape(4, 5) * scale for scale in (1.0, 0.5))
    each = torch.func.vmap(torch.func.grad(lambda a, b: function(a, b).sum()))(x, y)
    made, moved = torch.func.jvp(lambda a: function(a, y), (x,), (torch.ones_like(x),))
    return [each, made, moved]


def normalized(x: Tensor, y: Tensor) -> Tensor:
    return torch.softmax(x * 2 + y, -1) * torch.sigmoid(x)


def plain(x: Tensor, y: Tensor) -> Tensor:
    return torch.sin(x * y) + y


WAYS = {"gradients": (normalized, two_orders), "transforms": (plain, batched_gradients)}


def is_a_step(code: CodeType) -> bool:
    file, name = name_of(code).split(":")[0], code.co_name
    return name not in LAST_RESORT.get(file, ()) and name not in NODES.get(file, ())


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all faults that are no matter of it."""
    return tmp_path_factory.mktemp("faults") / "libraries"


def in_derivations(cache: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> tuple[Subject, Counter[CodeType]]:
    """A subject whose libraries are there, so that all else is done again; and the steps of that."""
    monkeypatch.setenv("OPWRIGHT_CACHE", str(cache))
    monkeypatch.setenv("OPWRIGHT_TAPE", "off")
    reference, call = WAYS[way]

    def make() -> Operator:
        return Operator(reference, identity=lambda: None)

    subject = Subject(reference, make, call)
    call(make())  # what is done once in a process, and the libraries
    operator = make()
    return subject, steps_of(lambda: call(operator))


def run(subject: Subject, chosen: list[Fault]) -> list[str]:
    found = []
    for fault in chosen:
        for problem in problems(subject, lambda fault=fault: struck_by(fault)):
            found.append(f"{fault}: {problem}")
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count", [10, pytest.param(None, marks=pytest.mark.nightly)])
def test_a_fault_in_a_derivation_ends_in_the_reference(way, count, cache, monkeypatch, record_property):
    subject, steps = in_derivations(cache, monkeypatch, way)
    steps = Counter({step: calls for step, calls in steps.items() if is_a_step(step)})
    chosen = sample(list(faults(steps, each=1, seed=len(way))), count, seed=1)
    record_property("faults", len(chosen))
    found = run(subject, chosen)
    assert not found, f"{len(found)} problems after {len(chosen)} faults:\n" + "\n".join(found)
    print(f"{len(chosen)} faults in {len(steps)} steps of {way}")
