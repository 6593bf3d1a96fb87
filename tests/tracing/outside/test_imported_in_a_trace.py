"""What runs because a library imports a module is not compared: values must not depend on it."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from opwright import Operator

SETTINGS = "VALUES = {'k': 2.0}\n\ndef scale():\n    return VALUES['k']\n"
MODULE = "import settings_of_a_user\n\nK = settings_of_a_user.scale()\n"


def resolved(x: torch.Tensor) -> torch.Tensor:
    sys.modules.pop("module_of_a_user", None)
    return torch.tanh(x) * pkgutil.resolve_name("module_of_a_user:K")


def run(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) * runpy.run_path("module_of_a_user.py")["K"]


def found(x: torch.Tensor) -> torch.Tensor:
    settings: Any = sys.modules["settings_of_a_user"]
    with contextlib.suppress(ImportError):
        importlib.import_module("module_of_nobody")
    return torch.tanh(x) * settings.LAST


class Finder:
    def find_spec(self, name: str, *_: object) -> None:
        settings: Any = sys.modules["settings_of_a_user"]
        settings.LAST = settings.scale()


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    (tmp_path / "settings_of_a_user.py").write_text(SETTINGS)
    (tmp_path / "module_of_a_user.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("settings_of_a_user", None)
    made = importlib.import_module("settings_of_a_user")
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    return made


@pytest.mark.falls_back
@pytest.mark.parametrize("function", [resolved, run, found])
def test_values_of_such_code_are_those_of_the_call(function: Callable[..., Any], settings: Any) -> None:
    operator, x = Operator(function, name=f"imports_{function.__name__}"), torch.randn(3, 4)
    for scale in (2.0, 5.0):
        settings.VALUES["k"] = scale
        for _ in range(2):
            assert torch.equal(operator(x), torch.tanh(x) * scale)
