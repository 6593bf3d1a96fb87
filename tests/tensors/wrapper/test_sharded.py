"""Parameters that are wrappers under FSDP2: two processes train as one does."""

from __future__ import annotations

import copy
import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from opwright.errors import WrapperRefused
from tests.tensors.wrapped import Meta, Pair

STEPS = 3


class Policy:
    """What FSDP2 says of mixed precision."""

    def __init__(self, param_dtype: torch.dtype | None = None) -> None:
        self.param_dtype = param_dtype


class Mesh:
    """Of two processes."""

    def size(self) -> int:
        return 2


def asked(wrapper: Any, outer: tuple[int, ...], policy: Policy | None = None) -> Any:
    return wrapper.fsdp_pre_all_gather(Mesh(), torch.Size(outer), (), None, policy or Policy())


def test_every_process_gives_as_many_rows() -> None:
    (first,), _ = asked(Meta(torch.ones(3, 2), "me"), (5, 2))
    (last,), metadata = asked(Meta(torch.ones(2, 2), "me"), (5, 2))
    (none,), _ = asked(Meta(torch.ones(0, 2), "me"), (1, 2))
    assert (first.shape, last.shape, none.shape) == ((3, 2), (3, 2), (1, 2))
    assert metadata == ("me",)
    assert last[2].eq(0).all()


def test_mixed_precision_changes_what_the_wrapper_shows() -> None:
    (found,), _ = asked(Meta(torch.ones(3, 2), "me"), (6, 2), Policy(torch.bfloat16))
    assert found.dtype is torch.bfloat16
    whole, inner = Meta(torch.ones(3, 2), "me").fsdp_post_all_gather((found,), ("me",), torch.bfloat16)
    assert (type(whole), whole.owner, whole.dtype, inner) == (Meta, "me", torch.bfloat16, (found,))


def test_what_the_defaults_cannot_know_is_refused() -> None:
    with pytest.raises(WrapperRefused, match="another shape"):
        asked(Pair(torch.ones(2, 2), torch.ones(1)), (4, 2))
    with pytest.raises(WrapperRefused, match="another dimension than the first"):
        asked(Meta(torch.ones(4, 1), "me"), (4, 2))


class Model(nn.Module):
    """Rows that two processes can and cannot divide evenly."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 5)
        for layer in (self.first, self.second):
            layer.weight = nn.Parameter(Meta(layer.weight.detach().clone(), "me"))

    def forward(self, x: torch.Tensor) -> Any:
        return self.second(torch.tanh(self.first(x)))


def data(step: int, rank: int) -> torch.Tensor:
    return torch.randn(8, 4, generator=torch.Generator().manual_seed(10 * step + rank))


def _optimizer(name: str, parameters: Any) -> torch.optim.Optimizer:
    kinds: dict[str, Callable[[], torch.optim.Optimizer]] = {
        "SGD": lambda: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
        "Adam": lambda: torch.optim.Adam(parameters, lr=0.01),
    }
    return kinds[name]()


def _train(rank: int, folder: str, name: str) -> None:
    """Train in one of two processes, then write the whole weights down; the first compares with training alone."""
    from torch.distributed.fsdp import fully_shard

    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo",
        init_method=Path(folder, "meeting").as_uri(),
        rank=rank,
        world_size=2,
        timeout=datetime.timedelta(seconds=60),
    )
    try:
        torch.manual_seed(0)
        model = Model()
        alone = copy.deepcopy(model)
        mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2,))
        for layer in (model.first, model.second, model):
            fully_shard(layer, mesh=mesh, reshard_after_forward=True)
        optimizer, optimizer_alone = _optimizer(name, model.parameters()), _optimizer(name, alone.parameters())
        for step in range(STEPS):
            optimizer.zero_grad()
            optimizer_alone.zero_grad()
            found = model(data(step, rank))
            assert found.owner == "me"
            found.square().mean().backward()
            optimizer.step()
            sum(alone(data(step, each)).square().mean() / 2 for each in range(2)).backward()  # type: ignore[union-attr]
            optimizer_alone.step()
        for (key, parameter), expected in zip(model.named_parameters(), alone.parameters(), strict=True):
            local = parameter.to_local()  # type: ignore[attr-defined]
            if key.endswith("weight"):
                assert (type(local), local.owner) == (Meta, "me")
            whole = getattr(expected, "elem", expected).detach()
            half = -(-len(whole) // 2)
            torch.testing.assert_close(getattr(local, "elem", local).detach(), whole[half * rank : half * (rank + 1)])
        Path(folder, f"passed.{rank}").touch()
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.nightly
@pytest.mark.seconds(150)
@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_two_processes_train_as_one(tmp_path: Path, name: str) -> None:
    context = torch.multiprocessing.get_context("spawn")
    processes = [context.Process(target=_train, args=(rank, str(tmp_path), name)) for rank in range(2)]
    for process in processes:
        process.start()
    try:
        for process in processes:
            process.join(120)
    finally:
        for process in processes:
            process.kill()
    assert [process.exitcode for process in processes] == [0, 0]
    assert {path.name for path in tmp_path.glob("passed.*")} == {"passed.0", "passed.1"}
