"""Operators that step from level to level of torch's transforms both ways: in C++ and in Python."""

from dataclasses import replace

import pytest

from opwright.api.operator import Operator
from opwright.binding.native import native
from opwright.settings import Settings


class Anybody:
    def equip(self, native):
        """Nothing is done with it."""


@pytest.fixture(scope="module", params=["now", "off"], ids=["in C++", "in Python"])
def make(request):
    native.equip(Anybody(), Settings.from_environment())  # the module that every test has, by the usual compiler
    settings = replace(Settings.from_environment(), tape=request.param, notify=False)
    made = {}
    return lambda function: made.setdefault(function, Operator(function, settings=settings))
