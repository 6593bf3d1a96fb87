"""Threads that compile, differentiate and transform while others trace for the first time, in a fresh process."""

from pathlib import Path

import pytest

from tests.suite.nights import mostly_at_night
from tests.suite.warm_python import run

ROOT = Path(__file__).parents[3]
TRACES = """
import sys, threading, torch
from concurrent.futures import ThreadPoolExecutor
from opwright.derivation.joint import trace_joint
from opwright.tracing.interface.specs import TensorSpec
def repeated(times):
    def register(work):
        others.append((times, work))
    return register
others = []
def traced(number):
    begin.wait()
    for size in range(3, 7):
        specs = [TensorSpec("x", torch.float32, (size, 3), True)]
        joint = trace_joint(lambda x: torch.softmax(x.tanh() * number, -1), specs)
        assert joint.gradients[0] is not None
def other(times, work):
    begin.wait()
    for _ in range(times):
        work()
"""
END = """
begin = threading.Barrier(2 + len(others), timeout=60)
def run_all():  # a function, as traces would see a global that changes meanwhile
    with ThreadPoolExecutor(2 + len(others)) as threads:
        working = [threads.submit(other, *each) for each in others]
        for done in [threads.submit(traced, 2), threads.submit(traced, 3), *working]:
            done.result()
run_all()
"""
COMPILING = """
@repeated(1)
def work():
    compiled = torch.compile(lambda x: x.sin() * 2, backend="eager", fullgraph=True)
    assert torch.equal(compiled(torch.ones(3)), torch.ones(3).sin() * 2)
"""
TRANSFORMING = """
@repeated(300)
def work():
    x = torch.arange(3.0)
    assert torch.allclose(torch.func.vmap(torch.func.grad(torch.sin))(x), x.cos())
"""
IN_ANOMALY_MODE = """
import warnings
warnings.simplefilter("ignore")
torch.autograd.set_detect_anomaly(True)
@repeated(300)
def work():
    assert torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()
    x = torch.zeros(3, requires_grad=True)
    try:
        (x.sqrt() * 0).sum().backward()
    except RuntimeError as error:
        assert "nan values" in str(error)
    else:
        raise AssertionError("the NaN was not found")
"""
WITH_FAKE_TENSORS = """
from torch._subclasses.fake_tensor import FakeTensorMode
device = FakeTensorMode.__torch_dispatch__
@repeated(100)
def work():
    with FakeTensorMode():
        made = torch.ones(3) * 2
    assert made.device.type == "cpu" and FakeTensorMode.__torch_dispatch__ is device
"""
WORK = {"torch.compile": COMPILING, "the rest of torch": TRANSFORMING + IN_ANOMALY_MODE + WITH_FAKE_TENSORS}


@pytest.mark.parametrize("work", mostly_at_night(WORK.values(), by_day=1), ids=WORK)
def test_other_threads_are_not_disturbed(work: str) -> None:
    done = run("-c", TRACES + work + END, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]


def test_a_trace_waits_for_another_that_its_function_starts() -> None:
    script = """
import threading, torch
from opwright.tracing.interface.specs import TensorSpec
from opwright.tracing.trace import trace

specs = [TensorSpec("x", torch.float32, (4,))]
def inner(x):
    return x * 2
def outer(x):
    other = threading.Thread(target=trace, args=(inner, specs))
    other.start()
    other.join()
    return x * 3
assert len(trace(outer, specs)[0].outputs) == 1
"""
    done = run("-c", script, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
