"""Models that others wrote, served, against themselves: results, gradients and two steps of an optimizer.

In float64, in which rounding hardly ever moves a value across the kink of a relu. They need the extra `wild`, which
`make nightly` installs.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._pytree import tree_leaves

import opwright

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from wild_models import MODELS, Subject, make

from tests.wild.record import NOTHING, how_served, operations_beside, write

_ONLY_IN_FLOAT32 = frozenset({"transformers/mixtral"})  # torch's product of groups takes nothing wider
_STEPS, _TOLERANCE = 3, 1e-5  # of the largest value: some compute parts in float32

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.falls_back,
    pytest.mark.filterwarnings("ignore"),  # of other libraries
]


@pytest.fixture(scope="module")
def record(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """What serves the models that passed, by their names."""
    found: dict[str, Any] = {}
    yield found
    if request.config.getoption("--record-sweeps"):
        write(request.config.rootpath, found)


@pytest.mark.parametrize("name", MODELS)
def test_a_served_model_trains_as_it_does(name: str, record: dict[str, Any]) -> None:
    subject = make(name) if name in _ONLY_IN_FLOAT32 else make(name).double()
    plain, written = subject.model, copy.deepcopy(subject.model)
    served = opwright.module(written)
    optimizers = [torch.optim.SGD(model.parameters(), lr=1e-2) for model in (plain, written)]
    for step in range(_STEPS):
        expected, found = (_step(subject, model, step) for model in (plain, served))
        _assert_alike(expected, found)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    _assert_alike(dict(plain.named_buffers()), dict(written.named_buffers()))
    told = str(served.explain())  # type: ignore[operator]
    record[name] = how_served(told, operations_beside(lambda: served(*subject.args, **subject.kwargs)))
    assert record[name]["served"] != NOTHING, told


def _step(subject: Subject, model: nn.Module, step: int) -> dict[str, Any]:
    torch.manual_seed(step)
    returned, loss = subject.loss(model)
    loss.backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    return {**dict(_tensors(returned)), **gradients, "drawn": torch.get_rng_state()}


def _tensors(returned: Any) -> Iterator[tuple[str, torch.Tensor]]:
    given = returned.to_tuple() if hasattr(returned, "to_tuple") else returned
    for place, leaf in enumerate(tree_leaves(given)):
        if isinstance(leaf, torch.Tensor):
            yield f"result {place}", leaf.detach()


def _assert_alike(expected: dict[str, Any], found: dict[str, Any]) -> None:
    assert expected.keys() == found.keys()
    scale = max((_size(value) for name, value in expected.items() if name != "drawn"), default=0.0)
    for name, value in expected.items():
        other = found[name]
        assert (value is None) == (other is None), name
        if value is None:
            continue
        assert (value.shape, value.dtype) == (other.shape, other.dtype), name
        if name.startswith("result"):
            assert value.stride() == other.stride(), name
        # Gradients that are zero but for rounding, as of biases before a norm, are compared with the others.
        most = _TOLERANCE * max(_size(value), 1e-3 * scale)
        assert value.numel() == 0 or (value.double() - other.double()).abs().max().item() <= most, name


def _size(value: torch.Tensor | None) -> float:
    return 0.0 if value is None or value.numel() == 0 else value.double().abs().max().item()
