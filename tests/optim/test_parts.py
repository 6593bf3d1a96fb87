"""Parameters that are DTensors: kernels update what a process has of them. Several processes: tests/sharding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.testing._internal.distributed.fake_pg import FakeStore  # a mesh of which one process is there

import opwright
from opwright.errors import FallbackRefused
from opwright.optim.serving import buckets, plan

_R, _S = Replicate(), Shard(0)
# The rows that this process has, the last of four.
CASES: tuple[tuple[tuple[int, ...], Any, slice], ...] = (
    ((7, 6), _S, slice(6, 7)),
    ((5, 6), _S, slice(5, 5)),
    ((4,), _R, slice(0, 4)),
    ((8, 3), _S, slice(6, 8)),
)


@pytest.fixture
def mesh() -> Iterator[DeviceMesh]:
    dist.init_process_group("fake", store=FakeStore(), rank=3, world_size=4)
    yield DeviceMesh("cpu", [0, 1, 2, 3])
    dist.destroy_process_group()


@pytest.fixture
def no_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the definition serves")

    for module in (buckets, plan):
        monkeypatch.setattr(module, "run_composed", refuse)


def spread(local: torch.Tensor, shape: tuple[int, ...], placement: Any, mesh: DeviceMesh) -> DTensor:
    """A DTensor of what this process has."""
    like = torch.empty(shape, device="meta")
    return DTensor.from_local(local, mesh, [placement], run_check=False, shape=like.shape, stride=like.stride())


def trained(make: Any, params: list[torch.Tensor], gradients: list[torch.Tensor], steps: int) -> Any:
    optimizer = make(params)
    for _ in range(steps):
        for param, gradient in zip(params, gradients, strict=True):
            param.grad = gradient.detach()
        optimizer.step()
    return optimizer


MAKERS = [
    (lambda given: opwright.optim.AdamW(given, lr=0.1), lambda given: torch.optim.AdamW(given, lr=0.1)),
    (lambda given: opwright.optim.SGD(given, lr=0.1, momentum=0.9), lambda given: torch.optim.SGD(given, 0.1, 0.9)),
]


@pytest.mark.usefixtures("no_definition")
@pytest.mark.parametrize(("ours", "theirs"), MAKERS, ids=["AdamW", "SGD"])
def test_kernels_update_parts(mesh: DeviceMesh, ours: Any, theirs: Any) -> None:
    torch.manual_seed(0)
    wholes = [(torch.randn(shape), torch.randn(shape)) for shape, _, _ in CASES]
    params, gradients = [], []
    for (whole, gradient), (shape, placement, rows) in zip(wholes, CASES, strict=True):
        params.append(spread(whole[rows].clone(), shape, placement, mesh).requires_grad_())
        gradients.append(spread(gradient[rows].clone(), shape, placement, mesh))
    made = trained(ours, params, gradients, 3)
    expected = [whole.clone().requires_grad_() for whole, _ in wholes]
    trained(theirs, expected, [gradient for _, gradient in wholes], 3)
    for param, like, (_, _, rows) in zip(params, expected, CASES, strict=True):
        torch.testing.assert_close(param.to_local(), like.detach()[rows])
    steps = [float(made.state[param]["step"]) for param in params]
    assert steps == [3.0] * len(CASES)


@pytest.mark.usefixtures("no_definition")
def test_memory_that_moves_is_noticed(mesh: DeviceMesh) -> None:
    (param,) = given = [spread(torch.ones(2, 6), (8, 6), _S, mesh).requires_grad_()]
    optimizer = trained(lambda each: opwright.optim.SGD(each, lr=0.5), given, [param.detach().clone()], 1)
    param._local_tensor = torch.full((2, 6), 4.0)  # as FSDP2 does when a model is loaded
    optimizer.step()
    assert torch.equal(param.to_local(), torch.full((2, 6), 3.5))


def test_what_is_not_element_by_element_is_left_to_the_definition(
    mesh: DeviceMesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[str] = []
    monkeypatch.setattr(buckets, "run_composed", lambda definition, *_: left.append(definition.name))
    (param,) = given = [spread(torch.ones(2, 6), (8, 6), _S, mesh).requires_grad_()]
    with pytest.raises(FallbackRefused, match="it looks at a whole tensor, of which there are only parts"):
        trained(lambda each: opwright.optim.LAMB(each), given, [param.detach().clone()], 1)
    assert left == ["LAMB"]


@pytest.mark.usefixtures("no_definition")
def test_gradients_that_are_addends_are_summed_first(mesh: DeviceMesh, monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[Any] = []
    redistribute = DTensor.redistribute
    monkeypatch.setattr(
        DTensor, "redistribute", lambda *a, **k: (moved.append(k["placements"]), redistribute(*a, **k))[1]
    )
    given = [spread(torch.ones(4), (4,), _R, mesh).requires_grad_()]
    trained(lambda each: opwright.optim.SGD(each, lr=0.5), given, [spread(torch.ones(4), (4,), Partial(), mesh)], 2)
    assert set(moved) == {(_R,)}
