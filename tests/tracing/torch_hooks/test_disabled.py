"""Functions that the compiler leaves alone: run as they are without it, and by it as soon as it is imported."""

from pathlib import Path

import pytest

from tests.suite.nights import mostly_at_night
from tests.suite.warm_python import run

ROOT = Path(__file__).parents[3]
BEGIN = """
import sys, torch
from opwright.tracing.torch_hooks.disabled import spare_the_compiler
seen = []
@torch._disable_dynamo
def through(x):
    seen.append(torch.compiler.is_compiling())
    return x + 1
original = through.__wrapped__
spare_the_compiler()
assert through(torch.ones(3)).sum() == 6
assert "torch._dynamo" not in sys.modules
"""
AFTERWARDS = {
    "the compiler is asked at the next call": """
import torch._dynamo
ours = vars(original)["__dynamo_disable"]
through(torch.ones(3))
theirs = vars(original)["__dynamo_disable"]
assert theirs is not ours and theirs.__module__.startswith("torch._dynamo")
""",
    "the compiler breaks its graph there, at the first call too": """
graphs = []
def backend(graph, inputs):
    graphs.append([node.name for node in graph.graph.nodes if node.op.startswith("call")])
    return graph
@torch.compile(backend=backend)
def twice(x):
    return through(x.sin()) * 2
assert torch.allclose(twice(torch.ones(3)), (torch.ones(3).sin() + 1) * 2)
assert graphs == [["sin"], ["mul"]], graphs
assert not any(seen)
""",
}


@pytest.mark.parametrize("afterwards", mostly_at_night(AFTERWARDS.values(), by_day=1), ids=AFTERWARDS)
def test_a_disabled_function(afterwards: str) -> None:
    done = run("-c", BEGIN + afterwards, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
