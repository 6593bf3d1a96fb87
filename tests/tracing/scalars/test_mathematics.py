"""Functions of `math` take numbers that change, in a trace alone; elsewhere they are those of Python."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor

import opwright
from opwright.tracing.interface.specs import ArgumentSpec, NumberSpec, TensorSpec
from opwright.tracing.scalars.opaque import OF_MATH
from opwright.tracing.trace import trace
from tests.operator.against_eager import random, variants

PLAIN = {name: getattr(math, name) for name in (*OF_MATH, "pow")}


def of_all(x: Tensor, k: float) -> Tensor:
    root = math.sqrt(math.exp(k)) + math.log(2 + math.cos(k)) + math.log2(3 + math.sin(k))
    return x * (root + math.pow(1 + math.exp(k), 0.3) + math.tanh(k))


def test_one_kernel_serves_all_values() -> None:
    operator = opwright.operator(of_all)
    for value in (0.4, 0.7, -3.0, 12.5):
        torch.testing.assert_close(operator(random(4), value), of_all(random(4), value))
        assert operator.last_rung == "cpp"
    assert variants(operator) == 2  # that of the first value alone, and that of all


def rooted(x: Tensor, k: float) -> Tensor:
    return x * math.sqrt(k)


@pytest.mark.parametrize("function", [rooted, lambda x, k: x * math.log(k)], ids=["sqrt", "log"])
def test_what_python_refuses_is_refused(function: Callable[..., Any]) -> None:
    operator = opwright.operator(function)
    for value in (2.0, math.inf):
        assert torch.equal(operator(torch.ones(4), value), function(torch.ones(4), value))
    with pytest.raises(ValueError, match=r"math domain error|positive"):
        operator(torch.ones(4), -1.0)


def test_sizes_are_told_their_values() -> None:
    operator = opwright.operator(lambda x: x / math.sqrt(x.shape[-1]))
    for size in (4, 9):
        assert torch.equal(operator(torch.ones(3, size)), torch.ones(3, size) / math.sqrt(size))


def test_other_threads_find_the_functions_of_python_and_so_does_all_later_code() -> None:
    traced, told = threading.Event(), set()

    def ask() -> None:
        while not traced.is_set():
            told.add((math.sqrt(2.0), math.pow(2, 3), math.log(8, 2)))

    specs: list[ArgumentSpec] = [TensorSpec("x", torch.float32, (4,)), NumberSpec("k", 2.5)]
    with ThreadPoolExecutor(1) as other:
        asking = other.submit(ask)
        try:
            trace(of_all, specs)
        finally:
            traced.set()
        asking.result()
    assert told == {(2**0.5, 8.0, 3.0)}
    assert {name: getattr(math, name) for name in PLAIN} == PLAIN
