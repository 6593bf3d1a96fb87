"""Whoever records operations, as compilers do, sees one for each call, whatever the operator's parameters are."""

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

import opwright

X = torch.linspace(-1, 2, 6).reshape(2, 3)


@opwright.operator
def of_a_keyword(x: Tensor, *, gain: float = 2.0) -> Tensor:
    return x.sin() * gain


@opwright.operator
def of_numbers(x: Tensor, count: int, gain: float = 2.0, negative: bool = False) -> Tensor:
    return x.sin() * (-gain if negative else gain) + count


@opwright.operator
def of_none(x: Tensor, bias: Tensor | None = None, *, limit: float | None = None) -> Tensor:
    y = x.sin() if bias is None else x.sin() + bias
    return y if limit is None else y.clamp(max=limit)


@opwright.operator
def of_words(x: Tensor, *, kind: str = "sin") -> Tensor:
    return x.sin() if kind == "sin" else x.cos()


CALLS = {
    "a keyword": lambda x: of_a_keyword(x, gain=3.0),
    "a keyword's default": lambda x: of_a_keyword(x),
    "numbers": lambda x: of_numbers(x, 2, negative=True),
    "none": lambda x: of_none(x),
    "none and a tensor": lambda x: of_none(x, x, limit=0.5),
    "words": lambda x: of_words(x, kind="cos"),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("mode", ["fake", "symbolic"])
def test_a_call_is_one_operation(call, mode):
    graph = make_fx(CALLS[call], tracing_mode=mode)(X)
    called = [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]
    assert [name for name in called if name.startswith("opwright.of_")] == called
    assert len(called) == 1
    torch.testing.assert_close(graph(X), CALLS[call](X))
