"""Attributes keyed by modules, shallow copies of served modules, and classes with slots."""

import copy

import pytest
import torch
from torch import nn

import opwright
from opwright.errors import ModuleUnsupported

X = torch.linspace(-1, 1, 12).reshape(3, 4)


class Keyed(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.scales, self.pairs = {self.first: 2.0}, {(self.second, "scale"): 3.0}

    def forward(self, x):
        scale = self.pairs.get((self.second, "scale"), 11.0)
        return self.first(x) * self.scales.get(self.first, 7.0) + self.second(x) * scale


class Chosen(Keyed):
    def __init__(self):
        super().__init__()
        self.chosen = {self.second}

    def forward(self, x):
        return sum(inner(x) for inner in (self.first, self.second) if inner in self.chosen)


class Slotted(nn.Module):
    __slots__ = ("scale",)

    def __init__(self):
        super().__init__()
        self.scale = 2.0

    def forward(self, x):
        return x * self.scale


def test_dicts_keyed_by_modules_and_what_changes_in_them():
    written = Keyed()
    served = opwright.module(written)
    for scale in (2.0, 4.0):
        written.scales[written.first] = scale
        torch.testing.assert_close(served(X), written(X))
        assert served.last_rung == "cpp"


@pytest.mark.falls_back
def test_sets_of_modules():
    written = Chosen()
    torch.testing.assert_close(opwright.module(written)(X), written(X))


def test_a_shallow_copy_has_attributes_of_its_own():
    written = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    served = opwright.module(written)
    copied = copy.copy(served)
    copied.training, copied.tag = False, 1
    assert (served.training, written.training, hasattr(served, "tag")) == (True, True, False)
    assert type(copied) is type(served)
    assert copied[0] is written[0]
    copied.eval()
    torch.testing.assert_close(copied(X), written(X))


@pytest.mark.falls_back
def test_slots():
    with pytest.raises(ModuleUnsupported, match="Slotted has __slots__"):
        opwright.module(Slotted())
    around = nn.Sequential(Slotted(), nn.Linear(4, 4))
    torch.testing.assert_close(opwright.module(around)(X), around(X))
