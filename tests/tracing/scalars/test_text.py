"""While a reference is traced, numbers as text are refused and sizes told, on that thread and nowhere else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch import Tensor

from opwright.api.operator import Operator
from opwright.errors import NumberNeeded
from opwright.tracing.callers import is_outside
from opwright.tracing.interface.specs import NumberSpec, TensorSpec
from opwright.tracing.trace import trace

SPECS = [TensorSpec("x", torch.float32, (4,)), NumberSpec("k", 2.5)]


def in_words(x: Tensor, k: float) -> Tensor:
    return x * len(f"{k}")


KINDS = (torch.SymInt, torch.SymFloat, torch.SymBool)


def test_a_number_is_refused_and_torch_left_as_it_was() -> None:
    before = [kind.__repr__ for kind in KINDS]
    with pytest.raises(NumberNeeded, match="as text"):
        trace(in_words, SPECS)
    assert [kind.__repr__ for kind in KINDS] == before


@pytest.mark.parametrize("number", [1.5, 2.5])
def test_sizes_are_told_and_guarded(number: float) -> None:
    def reference(x: Tensor, k: float) -> Tensor:
        return (
            x
            * k
            * len(f"{x.shape[0]} {tuple(x.shape)} {x.shape} {x.shape[0] > 3} {x.shape[0] / 2} {k is None} {k > 1}")
        )

    operator = Operator(reference, name="tests::told")
    for length in (2, 4, 5, 12, 100, 4):
        x = torch.ones(length, 3)
        for value in (number, number + 1):
            torch.testing.assert_close(operator(x, value), reference(x, value))
            assert operator.last_rung == "cpp"


@pytest.mark.parametrize(("folder", "is_others"), [("torchvision", True), ("torch", False)])
def test_what_lies_beside_torch_is_not_torch(folder: str, is_others: bool) -> None:
    file = Path(torch.__file__).parents[1] / folder / "functions.py"
    namespace: dict[str, Callable[[], object]] = {}
    exec(compile("import sys\ndef asking():\n    return sys._getframe(0)", str(file), "exec"), namespace)
    assert is_outside(namespace["asking"]()) == is_others


def test_another_thread_writes_what_it_likes() -> None:
    def reference(x: Tensor, k: float) -> Tensor:
        written: list[str] = []
        thread = threading.Thread(target=lambda: written.append(str(k)))
        thread.start()
        thread.join()
        return x * len(written)

    graph, _ = trace(reference, SPECS)
    assert any(1 in node.args for node in graph.fx.nodes)


def test_each_of_many_traces_at_once_is_asked() -> None:
    before = torch.SymFloat.__repr__

    def refused(_: int) -> bool:
        try:
            trace(in_words, SPECS)
        except NumberNeeded:
            return True
        return False

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(refused, range(8)))
    assert torch.SymFloat.__repr__ == before
