"""`depth=` and `parts=` choose the modules that are served, each as a whole."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import opwright
from opwright.errors import OpwrightError, PartsRefused, SaveRefused


class Model(nn.Module):
    """Two levels of modules."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([nn.Sequential(nn.Tanh(), nn.Sigmoid()), nn.Softplus()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x.exp()


WHOLE, PARTS = "kernels: 1 forward", "its parts"
CHOICES = {
    "the whole": ({}, [WHOLE, "in it", "in it", "in it", "in it", "in it"]),
    "depth 0": ({"depth": 0}, [WHOLE, "in it", "in it", "in it", "in it", "in it"]),
    "depth 1": ({"depth": 1}, [PARTS, "", WHOLE, "in 0", "in 0", WHOLE]),
    "depth 2": ({"depth": 2}, [PARTS, "", PARTS, WHOLE, WHOLE, WHOLE]),
    "a name": (
        {"parts": lambda name, _: name == "blocks.0.1"},
        [PARTS, "", PARTS, "as written", WHOLE, "as written"],
    ),
    "a class": (
        {"parts": lambda _, module: isinstance(module, nn.Sequential)},
        [PARTS, "", WHOLE, "in 0", "in 0", "as written"],
    ),
    "the whole, by name": ({"parts": lambda name, _: name == ""}, [WHOLE] + ["in it"] * 5),
    "nothing": ({"parts": lambda *_: False}, [PARTS, "", PARTS, "as written", "as written", "as written"]),
}


@pytest.mark.parametrize("name", CHOICES)
def test_the_chosen_modules_are_served(name: str) -> None:
    options, expected = CHOICES[name]
    plain, x = Model(), torch.randn(3, 4)
    served = opwright.module(plain, **options)
    for each in (served, served, copy.deepcopy(served)):
        torch.testing.assert_close(each(x), plain(x))
        labels = [" ".join(line.split()) for line in each.explain().splitlines()]
        texts = [" ".join(line.split()[2 if at else 1 :]) for at, line in enumerate(labels)]
        assert texts == expected
    assert opwright.module(served, **options) is served
    assert opwright.module(served, depth=5) is not served


@pytest.mark.falls_back
def test_a_chosen_module_without_kernels_says_so(told: Callable[[], list[str]]) -> None:
    class Branch(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if x.sum() > 0 else -x

    served = opwright.module(nn.Sequential(nn.Tanh(), Branch()), depth=1)
    for _ in range(2):
        served(torch.ones(3))
    (text,) = told()
    assert "Branch falls back to your function" in text
    assert "as written: " in served.explain()


REFUSED: dict[str, tuple[type[OpwrightError], dict[str, Any], str]] = {
    "negative": (PartsRefused, {"depth": -1}, "depth=-1 is no number of levels"),
    "a bool": (PartsRefused, {"depth": True}, "depth=True is no number of levels"),
    "a text": (PartsRefused, {"depth": "all"}, "depth='all' is no number of levels"),
    "a list": (PartsRefused, {"parts": ["a"]}, "parts=['a'] cannot be called"),
    "both": (PartsRefused, {"depth": 1, "parts": lambda *_: True}, "both choose"),
    "no bool": (PartsRefused, {"parts": lambda *_: None}, "parts= gave None for the module ''"),
    "save": (SaveRefused, {"save": "some"}, "save='some'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    kind, options, words = REFUSED[name]
    with pytest.raises(kind) as raised:
        opwright.module(Model(), **options)
    assert words in raised.value.fact
    assert raised.value.hint


class Explaining(nn.Module):
    """A class with a method of the name of ours."""

    def explain(self, x: torch.Tensor) -> torch.Tensor:
        return x.sin() * 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.explain(x)


def test_a_method_of_that_name_stays_the_users() -> None:
    served, x = opwright.module(Explaining()), torch.randn(3)
    torch.testing.assert_close(served(x), x.sin() * 2)
    torch.testing.assert_close(served.explain(x), x.sin() * 2)
