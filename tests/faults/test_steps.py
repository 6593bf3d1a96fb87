"""Every function that a call goes through while kernels are found or made raises, one after the other.

By day some of them; at night all.
"""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
import torch
from torch import Tensor

import opwright
from opwright.api.operator import Operator
from opwright.settings import Settings
from tests.faults.injection import Fault, faults, name_of, sample, steps_of, struck_by
from tests.faults.trial import Subject, problems
from tests.keeping_compiler import keeping_compiler
from tests.quick_compiler import OPTIMIZING_NOTHING
from tests.suite.nights import mostly_at_night

pytestmark = [
    pytest.mark.falls_back,
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
    # A fault may strike while torch's compiler, loaded by another test, is told of a garbage collection.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

# What is there to fall back at all, and so has nobody behind it.
LAST_RESORT = {
    "operators/base.py": ("__call__", "__init__"),
    "binding/serving/server.py": ("serve", "_serve_slowly"),
    "binding/serving/by_reference.py": ("serve_by_reference", "serve_left", "run_instead"),
    "binding/serving/structured.py": ("serve", "serve_by_reference"),
    "binding/serving/mutating.py": ("serve", "serve_by_reference"),
    "binding/own_errors.py": ("is_for_the_caller", "is_wanted"),
    "binding/fallbacks.py": ("tell", "is_strict"),
    "tracing/interface/signature.py": ("bind",),
    "tracing/recording/faults.py": ("fault_of", "refusing_faults"),
}
# The backward passes of nodes, and which operator they ask: lines that derive nothing and run at every call.
NODES = {
    "binding/autograd/node.py": (
        *("backward", "some_missing", "_run_backward", "_size"),
        *("_arguments", "_intermediates", "zeros", "<listcomp>", "<genexpr>"),
    ),
    "binding/autograd/derived_node.py": ("gradients", "_arguments", "_call", "_drawing", "<listcomp>"),
    "binding/autograd/after_changes.py": ("differentiated",),
    "binding/autograd/kernels.py": ("run_backward",),
    "binding/autograd/passes.py": ("saved_for", "came_before"),
    "binding/transforms/dual_tensors.py": ("backward",),
    "binding/environment.py": ("is_transformed", "is_asked_for", "recording"),
    "binding/variants/states.py": ("ensure_same", "holds", "failing"),
    "binding/transforms/now.py": ("backward",),
    "tracing/outside/guard.py": ("first_failing", "_attribute", "_method", "<lambda>"),
    "tracing/outside/plain.py": ("are_same",),
    "binding/transforms/safe.py": ("backward_of", "backward", "_made", "<genexpr>"),
    "binding/transforms/step_below.py": ("backward",),
    "binding/variants/variant.py": ("spared", "narrowed", "given", "known", "laid_out", "<listcomp>", "<genexpr>"),
    "binding/transforms/differentiating.py": ("__call__", "_given", "<listcomp>"),
    "tracing/interface/results.py": ("places",),
}
_numbers = itertools.count()


def test_the_steps_that_are_left_out_are_there() -> None:
    """So that one with another name is not left out for nothing, and its faults looked at."""
    package = Path(opwright.__file__).parent
    for file, names in [*LAST_RESORT.items(), *NODES.items()]:
        defined = {node.name for node in ast.walk(ast.parse((package / file).read_text())) if hasattr(node, "name")}
        assert not [name for name in names if not name.startswith("<") and name not in defined], file


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
        return Operator(reference, identity=lambda _: None)

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


@pytest.mark.parametrize("way", mostly_at_night(WAYS, by_day=1))
@pytest.mark.parametrize("count", [5, pytest.param(None, marks=pytest.mark.nightly)])
def test_a_fault_in_a_derivation_ends_in_the_reference(way, count, cache, monkeypatch, record_property):
    subject, steps = in_derivations(cache, monkeypatch, way)
    steps = Counter({step: calls for step, calls in steps.items() if is_a_step(step)})
    chosen = sample(list(faults(steps, each=1, seed=len(way))), count, seed=1)
    record_property("faults", len(chosen))
    found = run(subject, chosen)
    assert not found, f"{len(found)} problems after {len(chosen)} faults:\n" + "\n".join(found)
    print(f"{len(chosen)} faults in {len(steps)} steps of {way}")


def scaled(x: Tensor, y: Tensor) -> Tensor:
    return x * y + y


def one_order(function: Callable[..., Any]) -> list[Tensor]:
    x = torch.linspace(-1, 1, 6).requires_grad_()
    z = function(x, torch.full((6,), 2.0))
    return [z.detach(), *torch.autograd.grad(z.sum(), x)]


def from_nothing(folder: Path) -> Subject:
    """A subject with a cache of its own, and kernels that no other has loaded."""
    cache, name = folder / f"cache_{next(_numbers)}", f"scaled_{next(_numbers)}"
    settings = Settings(cache, keeping_compiler(OPTIMIZING_NOTHING), tape="off")
    return Subject(scaled, lambda: Operator(scaled, name=name, settings=settings, identity=lambda _: name), one_order)


@pytest.mark.parametrize("count", [4, pytest.param(None, marks=pytest.mark.nightly)])
def test_a_fault_in_a_build_ends_in_the_reference(count, tmp_path):
    one_order(from_nothing(tmp_path).make())
    built = from_nothing(tmp_path).make()
    steps = steps_of(lambda: one_order(built))
    again = from_nothing(tmp_path)
    one_order(again.make())
    derived = again.make()
    steps -= steps_of(lambda: one_order(derived))  # what is done where kernels are found; the rest of it is done above
    steps = Counter({step: calls for step, calls in steps.items() if is_a_step(step) and is_of_a_build(step)})
    chosen, found = sample(list(faults(steps, each=2, seed=4)), count, seed=2), []
    for fault in chosen:
        for problem in problems(from_nothing(tmp_path), lambda fault=fault: struck_by(fault)):
            found.append(f"{fault}: {problem}")
    assert not found, f"{len(found)} problems after {len(chosen)} faults:\n" + "\n".join(found)
    print(f"{len(chosen)} faults in {len(steps)} steps of a build")


def is_of_a_build(code: CodeType) -> bool:
    return name_of(code).startswith(("toolchain/", "binding/"))
