"""What served the last call is told to each thread of its own calls, also while others call."""

import sys
import threading

import pytest
import torch
from torch import Tensor, nn

import opwright

ROUNDS = 200


def kernels(x: Tensor) -> Tensor:
    return x * 2 + 1


def changing(x: Tensor, total: Tensor) -> Tensor:
    total += x
    return x * 2


def in_a_list(tensors: list[Tensor]) -> Tensor:
    return tensors[0] * 2 + tensors[1]


ROWS = {
    "plain": (opwright.Operator(kernels, name="rungs::kernels"), lambda x: (x,)),
    "mutating": (opwright.Operator(changing, name="rungs::changing", mutates=["total"]), lambda x: (x, x.clone())),
    "structured": (opwright.Operator(in_a_list, name="rungs::in_a_list"), lambda x: ([x, x],)),
    "module": (opwright.module(nn.Sequential(nn.Linear(3, 3), nn.ReLU())), lambda x: (x,)),
}


@pytest.fixture
def impatient():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("row", ROWS)
def test_two_threads_see_each_its_own(row, impatient):
    """One calls with what kernels take, the other with an empty tensor, which the reference serves."""
    operator, arguments = ROWS[row]
    full, empty = torch.ones(2, 3), torch.ones(0, 3)
    operator(*arguments(full))
    assert operator.last_rung == "cpp"
    seen = {"cpp": set(), "composed": set()}
    start = threading.Barrier(2)

    def call(rung, x):
        start.wait(60)
        for _ in range(ROUNDS):
            operator(*arguments(x))
            seen[rung].add(operator.last_rung)

    threads = [threading.Thread(target=call, args=pair) for pair in (("cpp", full), ("composed", empty))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert seen == {"cpp": {"cpp"}, "composed": {"composed"}}
    assert operator.last_rung == "cpp"
