"""The private hooks of torch that tracing relies on: that they exist, do what is relied on, and leave no trace."""

from __future__ import annotations

import inspect
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
import torch._decomp
from torch._guards import SLoc
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._python_dispatch import TorchDispatchMode

from opwright.tracing.interface.specs import TensorSpec
from opwright.tracing.torch_hooks import fake_mode
from opwright.tracing.torch_hooks.fake_mode import LeanFakeTensorMode, LeanShapeEnv, core_decompositions
from opwright.tracing.trace import trace
from tests.suite.nights import mostly_at_night
from tests.suite.warm_python import run

ROOT = Path(__file__).parents[3]


def test_shape_environment_asks_for_a_summary_of_the_stack() -> None:
    signature = inspect.signature(ShapeEnv._get_stack_summary)
    assert list(signature.parameters) == ["self", "is_debug", "framework_loc"]
    assert SLoc(None, None) is not None


def test_modes_can_do_without_the_wrapper_for_the_compiler() -> None:
    assert FakeTensorMode._should_skip_dynamo() in (True, False)
    assert TorchDispatchMode._should_skip_dynamo() in (True, False)


COPIED = {ShapeEnv: LeanShapeEnv, FakeTensorMode: LeanFakeTensorMode}


@pytest.mark.parametrize(("kind", "lean"), COPIED.items(), ids=lambda kind: kind.__name__)
def test_a_private_copy_differs_from_the_original_by_its_globals_alone(kind: type, lean: type) -> None:
    copies = {name: copy for name, copy in vars(lean).items() if "__builtins__" in getattr(copy, "__globals__", {})}
    copies = {name: copy for name, copy in copies.items() if copy.__globals__.get("log") is fake_mode._SILENT}
    assert "__init__" in copies
    for name, copy in copies.items():
        original = inspect.unwrap(vars(kind)[name])
        assert (copy.__code__, copy.__defaults__, copy.__kwdefaults__) == (
            original.__code__,
            original.__defaults__,
            original.__kwdefaults__,
        )
        assert original.__globals__["torch"] is torch


def test_the_configuration_that_fake_tensors_ask_for_begins_with_what_we_say() -> None:
    from torch._dynamo import config

    ours = fake_mode._TORCH._dynamo.config
    for name, value in vars(fake_mode._Configuration).items():
        assert name.startswith("__") or (isinstance(value, bool) and hasattr(config, name)), name
    assert ours._custom_ops_profile is config._custom_ops_profile
    with pytest.raises(AttributeError):
        _ = ours.recompile_limit


def test_core_decompositions_are_in_the_public_table() -> None:
    assert callable(torch._decomp._core_aten_decompositions_post_autograd)
    public = torch._decomp.core_aten_decompositions()
    assert len(core_decompositions()) > 300
    assert all(public[operation] is rule for operation, rule in core_decompositions().items())


TRACE = """
import sys, torch
from opwright.tracing.interface.specs import TensorSpec
from opwright.derivation.joint import trace_joint
joint = trace_joint(lambda x: torch.tanh(x).sum(-1), [TensorSpec("x", torch.float32, (4, 3), True)])
assert len(joint.gradients) == 1
"""
WITHOUT_THE_COMPILER = {
    "nothing of the compiler is imported": """
assert not [name for name in sys.modules if name.startswith(("torch._dynamo", "torch._inductor"))]
assert "_dynamo" not in vars(torch)
""",
    "torch logs as ever": """
from torch._logging import _internal
from torch._subclasses import fake_tensor
assert not fake_tensor.log.disabled and isinstance(_internal.trace_log.handlers, list)
""",
    "no results are remembered by their arguments": """
from torch._subclasses.fake_tensor import FakeTensorMode
assert FakeTensorMode.cache_info().misses == FakeTensorMode.cache_info().hits == 0
""",
}
WITH_THE_COMPILER = {
    "a disabled function is disabled by it later": """
@torch._disable_dynamo
def through(x):
    return x + 1
@torch.compile(backend="eager")
def twice(x):
    return through(x) * 2
assert torch.equal(twice(torch.ones(3)), torch.full((3,), 4.0))
""",
    "it imports": """
import torch._dynamo
assert torch._dynamo.optimize and torch._dynamo.config.suppress_errors in (True, False)
assert torch._dynamo.__file__
""",
    "it compiles": """
@torch.compile(backend="eager", fullgraph=True)
def double(x):
    return x.sin() * 2
x = torch.ones(3)
torch._dynamo.utils.counters.clear()
assert torch.equal(double(x), x.sin() * 2)
assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
""",
    "tracing works with it": """
import torch._dynamo
joint = trace_joint(lambda x: torch.tanh(x), [TensorSpec("x", torch.float32, (4, 3), True)])
assert joint.result.is_bare and sys.modules["torch._dynamo"].__file__
""",
}


@pytest.mark.parametrize(
    "afterwards", mostly_at_night([WITH_THE_COMPILER, WITHOUT_THE_COMPILER], by_day=1), ids=["with it", "without it"]
)
def test_after_a_trace(afterwards: dict[str, str]) -> None:
    programs = (f"print({name!r}, file=sys.stderr){text}" for name, text in afterwards.items())
    done = run("-c", "\n".join(["import warnings; warnings.simplefilter('error')", TRACE, *programs]), cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]


def test_work_runs_again_with_the_python_dispatcher_if_it_fails_without() -> None:
    seen = []

    def work() -> str:
        seen.append(torch._C._dispatch_tls_is_dispatch_key_included(torch._C.DispatchKey.PythonDispatcher))
        if not seen[-1]:
            raise AttributeError("a formula for symbolic sizes")
        return "done"

    assert fake_mode.with_more_formulas_if_needed(work) == "done"
    assert seen == [False, True]


def test_two_traces_run_at_once() -> None:
    inside = threading.Barrier(2, timeout=60)

    def reference(x: torch.Tensor) -> torch.Tensor:
        inside.wait()
        return x * 2

    with ThreadPoolExecutor(2) as threads:
        specs = [TensorSpec("x", torch.float32, (4,))]
        traces = [threads.submit(trace, reference, specs) for _ in range(2)]
        assert [len(found.result()[0].outputs) for found in traces] == [1, 1]
