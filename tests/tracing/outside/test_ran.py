"""Which functions count as run by a function of the user."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sympy import ZZ, ring

from opwright.tracing.outside.ran import _functions_run


def names_run(work: Callable[[], object]) -> set[str]:
    with _functions_run() as run:
        work()
    return {code.co_name for code in run.values()}


def test_what_sympy_writes_is_of_sympy() -> None:
    _, *terms = ring("a,b,c,d,e,f,g", ZZ)  # so many that nothing was written for them before

    def divide() -> None:
        assert (terms[0] * terms[1]).exquo(terms[0]) == terms[1]

    assert names_run(divide) == {"divide"}


def test_what_a_user_writes_without_a_module_is_the_users() -> None:
    made: dict[str, Any] = {}

    def work() -> None:
        exec("def written(x):\n    return x + 1", made)
        made["written"](1)

    assert names_run(work) == {"work", "<module>", "written"}


def test_finders_of_modules_are_of_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Finder:
        def find_spec(self, *_: object) -> None:
            return None

    (tmp_path / "a_module_that_is_found.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])

    def work() -> None:
        importlib.import_module("a_module_that_is_found")

    assert "find_spec" not in names_run(work)
    assert "find_spec" in names_run(lambda: Finder().find_spec())


def test_what_runs_because_a_library_imports_a_module_is_the_librarys(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A module of others, one that it imports itself, and what `dataclass` writes in both."""
    made = "from dataclasses import dataclass\n\n@dataclass\nclass Made:\n    x: int = 1\n"
    (tmp_path / "imported_lazily.py").write_text(f"import imported_by_it\n{made}\ndef called():\n    return Made()\n")
    (tmp_path / "imported_by_it.py").write_text(made)
    monkeypatch.syspath_prepend(tmp_path)
    library: dict[str, Any] = {"__name__": "torch._a_module_of_torch"}
    exec("def load():\n    import imported_lazily\n    return imported_lazily", library)

    def work() -> Any:
        return library["load"]()

    assert names_run(work) == {"work"}
    assert names_run(lambda: work().called()) == {"<lambda>", "work", "called", "__init__"}


def test_what_a_user_imports_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "imported_by_a_user.py").write_text("def decorated(f):\n    return f\n\n@decorated\ndef g(): ...\n")
    monkeypatch.syspath_prepend(tmp_path)

    def work() -> None:
        importlib.import_module("imported_by_a_user")

    assert names_run(work) == {"work", "<module>", "decorated"}
