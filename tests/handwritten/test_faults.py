"""What a machine, or a mistake of ours, does to a rung written by hand leaves the call to what is derived."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from opwright.api.operator import Operator
from opwright.errors import BuildFailed, CacheUnusable, LibraryUnloadable


def tripled(x: Tensor) -> Tensor:
    return x * 3


def by_hand(x: Tensor) -> Tensor:
    return x + x + x


def refused_by(error, monkeypatch):
    operator = Operator(tripled)
    operator.implement("function", by_hand)

    def fails(*_: object, **__: object) -> None:
        raise error

    for passes in operator._written._rungs.values():
        monkeypatch.setattr(type(passes), "forward", fails)
    return operator


@pytest.mark.falls_back
@pytest.mark.parametrize("error", [CacheUnusable("injected"), LibraryUnloadable("injected")])
def test_what_the_machine_refuses_is_told_once(error, monkeypatch, told):
    operator = refused_by(error, monkeypatch)
    for _ in range(2):
        torch.testing.assert_close(operator(torch.ones(3)), torch.full((3,), 3.0))
        assert operator.last_rung == "cpp"
    assert told() == ["opwright: tripled falls back to its derived kernels: injected"]


@pytest.mark.falls_back
def test_a_mistake_of_ours_is_told_once(monkeypatch, told):
    operator = Operator(tripled)
    operator.implement("function", by_hand)
    monkeypatch.setattr("opwright.handwritten.server.record", None)
    for _ in range(2):
        torch.testing.assert_close(operator(torch.ones(3, requires_grad=True)), torch.full((3,), 3.0))
        assert operator.last_rung == "cpp"
    (text,) = told()
    assert "its kernels failed with TypeError" in text
    assert "opwright/handwritten/server.py" in text


@pytest.mark.parametrize("error", [BuildFailed("the author's"), ValueError("the author's")])
def test_what_the_author_got_wrong_is_raised(error, monkeypatch):
    operator = refused_by(error, monkeypatch)
    for _ in range(2):
        with pytest.raises(type(error), match="the author's"):
            operator(torch.ones(3))
