"""Metadata travels through every overridable function of torch, whatever argument the wrapper is, or it says why."""

from __future__ import annotations

import re

import pytest
import torch

from tests.suite.nights import mostly_at_night
from tests.tensors.overridable import functions, judge, written_into_plain

_SHAPE = "only the shape of the other tensor is read: nothing of it is in the result"
_INTO_PLAIN = "PyTorch computes it by changing a plain tensor in place, which cannot carry metadata"
_MEMORY = "PyTorch reads the memory of the argument itself, which a wrapper does not have"
EXCEPTIONS = {
    "torch.functional.broadcast_tensors": _SHAPE,
    "torch.Tensor.expand_as": _SHAPE,
    "torch.Tensor.reshape_as": _SHAPE,
    "torch.Tensor.resize_as": _SHAPE,
    "torch.Tensor.module_load": "a parameter takes the other's values, and keeps what it is",
    "torch.nn.functional.multi_head_attention_forward": "the weights depend neither on the values nor on what "
    "comes after",
    "torch.lobpcg": _INTO_PLAIN,
    "torch.lstm_cell": _INTO_PLAIN,
    "torch.rnn_relu": _INTO_PLAIN,
    "torch.rnn_relu_cell": _INTO_PLAIN,
    "torch.rnn_tanh": _INTO_PLAIN,
    "torch.rnn_tanh_cell": _INTO_PLAIN,
    "torch.Tensor.view_as": _SHAPE,
    "torch.Tensor.tensor_split": _MEMORY,
    "torch.tensor_split": _MEMORY,
    "torch.fbgemm_linear_quantize_weight": _MEMORY,
    "torch.fbgemm_pack_gemm_matrix_fp16": _MEMORY,
    "torch.Tensor.set_": _MEMORY,
}
FUNCTIONS = functions()
if hasattr(torch.Tensor, "align_as"):  # of PyTorch 2.11
    EXCEPTIONS["torch.Tensor.align_as"] = "only the names of the other tensor's dimensions are read"
_GOOD = ("kept", "no tensors")
_CALLED = 1000  # at least; the others need hardware, quantised or sparse tensors, or objects that are no tensors


@pytest.mark.parametrize("name", mostly_at_night([*FUNCTIONS][::25], by_day=[*FUNCTIONS][::100]))
def test_metadata_is_kept(name: str) -> None:
    assert name in EXCEPTIONS or judge(name, FUNCTIONS[name]) in (*_GOOD, "no call")


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_an_exception_is_one(name: str) -> None:
    said = judge(name, FUNCTIONS[name])
    reason = EXCEPTIONS[name]
    assert said.startswith("lost") or (
        reason == _MEMORY and re.search("data is not allocated|storage of a tensor", said)
    )
    if reason == _INTO_PLAIN:
        expected = "aten.copy_.default" if name == "torch.lobpcg" else "aten.add_.Tensor"
        assert written_into_plain(name, FUNCTIONS[name]) == {expected}


@pytest.mark.nightly
def test_metadata_is_kept_in_all() -> None:
    judged = {name: judge(name, function) for name, function in FUNCTIONS.items() if name not in EXCEPTIONS}
    assert {name: said for name, said in judged.items() if said not in (*_GOOD, "no call")} == {}
    assert [*judged.values()].count("kept") + [*judged.values()].count("no tensors") >= _CALLED
