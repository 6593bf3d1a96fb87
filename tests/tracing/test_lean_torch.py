"""The private hooks of torch that tracing relies on: that they exist, do what is relied on, and leave no trace."""

from __future__ import annotations

import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch._decomp
from torch._guards import SLoc
from torch._logging import _internal
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._python_dispatch import TorchDispatchMode

from opwright.tracing.lean_torch import core_decompositions

ROOT = Path(__file__).parents[2]


def test_shape_environment_asks_for_a_summary_of_the_stack() -> None:
    signature = inspect.signature(ShapeEnv._get_stack_summary)
    assert list(signature.parameters) == ["self", "is_debug", "framework_loc"]
    assert SLoc(None, None) is not None


def test_dispatch_of_a_fake_mode_is_wrapped_for_the_compiler() -> None:
    assert callable(FakeTensorMode.__torch_dispatch__)
    assert FakeTensorMode._should_skip_dynamo() in (True, False)
    assert TorchDispatchMode._should_skip_dynamo() in (True, False)


def test_trace_log_has_a_lazy_handler() -> None:
    assert {"root_dir", "stream"} <= set(inspect.signature(_internal.LazyTraceHandler.__init__).parameters) | set(
        vars(_internal.LazyTraceHandler(None))
    )
    assert isinstance(_internal.trace_log.handlers, list)


def test_core_decompositions_are_in_the_public_table() -> None:
    assert callable(torch._decomp._core_aten_decompositions_post_autograd)
    public = torch._decomp.core_aten_decompositions()
    assert len(core_decompositions()) > 300
    assert all(public[operation] is rule for operation, rule in core_decompositions().items())


@pytest.mark.parametrize("module", ["torch._dynamo", "torch._dynamo.config", "torch.fx.experimental.validator"])
def test_the_modules_that_stand_ins_stand_for_exist(module: str) -> None:
    assert importlib.util.find_spec(module.rpartition(".")[0]) is not None


TRACE = """
import sys, torch
from opwright.tracing.specs import TensorSpec
from opwright.derivation.joint import trace_joint
joint = trace_joint(lambda x: torch.tanh(x).sum(-1), [TensorSpec("x", torch.float32, (4, 3), True)])
assert len(joint.gradients) == 1
"""
AFTERWARDS = {
    "nothing of the compiler is imported": """
assert not [name for name in sys.modules if name.startswith(("torch._dynamo", "torch._inductor"))]
assert "_dynamo" not in vars(torch)
""",
    "the real compiler imports": """
import torch._dynamo
assert torch._dynamo.optimize and torch._dynamo.config.suppress_errors in (True, False)
assert torch._dynamo.__file__
""",
    "the compiler compiles": """
@torch.compile(backend="eager", fullgraph=True)
def double(x):
    return x.sin() * 2
x = torch.ones(3)
assert torch.equal(double(x), x.sin() * 2)
assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
""",
    "no results are remembered by their arguments": """
from torch._subclasses.fake_tensor import FakeTensorMode
assert FakeTensorMode.cache_info().misses == FakeTensorMode.cache_info().hits == 0
""",
    "tracing works with the compiler": """
import torch._dynamo
joint = trace_joint(lambda x: torch.tanh(x), [TensorSpec("x", torch.float32, (4, 3), True)])
assert joint.result.is_bare and sys.modules["torch._dynamo"].__file__
""",
    "a disabled function is disabled by the compiler later": """
@torch._disable_dynamo
def through(x):
    return x + 1
@torch.compile(backend="eager")
def twice(x):
    return through(x) * 2
assert torch.equal(twice(torch.ones(3)), torch.full((3,), 4.0))
""",
}


@pytest.mark.parametrize("afterwards", AFTERWARDS.values(), ids=AFTERWARDS)
def test_after_a_trace(afterwards: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", TRACE + afterwards], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_work_runs_again_with_the_compiler_if_it_fails_without() -> None:
    script = """
import sys
from opwright.tracing.lean_torch import without_compiler
seen = []
def work():
    seen.append(hasattr(sys.modules["torch._dynamo"], "optimize"))
    if not seen[-1]:
        raise AttributeError("something of the compiler")
    return "done"
assert without_compiler(work) == "done" and seen == [False, True]
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
