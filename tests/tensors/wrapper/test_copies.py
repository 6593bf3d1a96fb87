"""Wrappers are copied, saved, collated and sent to other processes, with their metadata."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from tests.tensors.wrapped import Meta, Pair, Sub, owned


def saved(value: Any) -> Any:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "deepcopy": copy.deepcopy,
    "save and load": saved,
}
SAMPLES: dict[str, Callable[[], Any]] = {
    "metadata": lambda: owned(3, 4),
    "metadata of a subclass": lambda: Sub(torch.randn(3), "me", "all"),
    "two tensors": lambda: Pair(torch.randn(3), torch.randn(3)),
    "a view": lambda: owned(4, 6)[1:, ::2].t(),
    "a leaf that requires gradients": lambda: owned(3).requires_grad_(),
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("sample", SAMPLES)
def test_a_copy_holds_the_same_elsewhere(how: str, sample: str) -> None:
    wrapper = SAMPLES[sample]()
    twin = COPIES[how](wrapper)
    assert type(twin) is type(wrapper)
    assert twin.requires_grad == wrapper.requires_grad
    assert twin.stride() == wrapper.stride()
    for name in wrapper.names.meta:
        assert getattr(twin, name) == getattr(wrapper, name)
    for name in wrapper.names.data:
        here, there = getattr(wrapper, name), getattr(twin, name)
        assert torch.equal(here, there)
        with torch.no_grad():
            here.add_(1)
        assert not torch.equal(here, there)


@pytest.mark.parametrize("how", ["deepcopy", "save and load"])  # pickle alone copies it, of plain tensors too
def test_what_shares_memory_shares_it_in_the_copy(how: str) -> None:
    whole = owned(4)
    copied, part, again = COPIES[how]([whole, whole[1:3], whole])
    assert copied is again
    copied.elem.zero_()
    assert part.elem.eq(0).all()


def test_gradients_are_copied_with_their_parameter() -> None:
    x = owned(3).requires_grad_()
    x.square().sum().backward()
    twin = copy.deepcopy(x)
    assert twin.grad.owner == "me"
    assert torch.equal(twin.grad.elem, x.grad.elem)
    assert twin.grad is not x.grad
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly"):
        copy.deepcopy(x * 2)


def test_a_batch_of_a_data_loader_is_wrapped() -> None:
    samples = [owned(2, owner="me") for _ in range(4)]
    batches = [*DataLoader([{"x": sample, "label": place} for place, sample in enumerate(samples)], batch_size=2)]
    for place, batch in enumerate(batches):
        assert type(batch["x"]) is Meta
        assert batch["x"].owner == "me"
        expected = torch.stack([sample.elem for sample in samples[2 * place : 2 * place + 2]])
        assert torch.equal(batch["x"].elem, expected)


def _doubled(received: Any, given: Any) -> None:
    wrapper = given.get(timeout=60)
    assert type(wrapper) is Meta
    wrapper.mul_(2)
    received.put((wrapper.owner, wrapper.elem.sum().item()))


@pytest.mark.nightly
@pytest.mark.seconds(120)
def test_another_process_sees_and_changes_it() -> None:
    context = torch.multiprocessing.get_context("spawn")
    received, given = context.Queue(), context.Queue()
    process = context.Process(target=_doubled, args=(received, given))
    process.start()
    try:
        x = owned(3)
        expected = x.elem * 2
        given.put(x)
        assert received.get(timeout=90) == ("me", expected.sum().item())
        torch.testing.assert_close(x.elem, expected)
        process.join(30)
        assert process.exitcode == 0
    finally:
        process.kill()


@pytest.mark.nightly
@pytest.mark.seconds(120)
def test_workers_of_a_data_loader_collate_it() -> None:
    loader = DataLoader([owned(2) for _ in range(4)], batch_size=2, num_workers=1, multiprocessing_context="spawn")
    loader.timeout = 90
    assert [(type(batch), batch.owner, batch.shape) for batch in loader] == [(Meta, "me", (2, 2))] * 2
