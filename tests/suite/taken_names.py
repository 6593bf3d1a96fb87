"""Fail a test that takes the name of an operator which other tests share: at the dispatcher, the later one replaces it.

An operator that is made while its module is imported serves all tests of the module. Once another operator has its
name, its calls go other ways than those the tests are about. `test_operator_names.py` finds the names that the sources
spell; this plugin also finds those of functions that are given as arguments.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Generator
from typing import Any

import pytest

_DISPATCHER = "opwright.binding.dispatcher.registered"


class TakenNames:
    """A plugin that watches the operators that exist when all tests are collected."""

    def __init__(self) -> None:
        self._shared: weakref.WeakSet[Any] = weakref.WeakSet()

    def pytest_collection_finish(self) -> None:
        if module := sys.modules.get(_DISPATCHER):
            self._shared.update(each for each in gc.get_objects() if type(each) is module.Registered)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        outcome = yield
        if replaced := [operator for operator in self._shared if operator.is_replaced]:
            self._shared.difference_update(replaced)
            names = ", ".join(sorted(operator._name for operator in replaced))
            pytest.fail(f"an operator of the same name replaced one that other tests share: {names}")
        return outcome
