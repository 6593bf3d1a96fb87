"""opwright runs in the main interpreter of a process, and says so elsewhere."""

from __future__ import annotations

import subprocess
import sys

import pytest

from opwright.errors import InterpreterUnsupported, OpwrightError
from opwright.toolchain.process import interpreter

INSIDE = """
import sys
sys.path[:] = {path!r}
try:
    import opwright
except ImportError as refusal:
    print(refusal, flush=True)
assert "torch" not in sys.modules
"""
OUTSIDE = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
run = getattr(interpreters, "exec", None) or interpreters.run_string
failure = run(interpreters.create(), {inside!r})
assert failure is None, failure
"""


def test_a_subinterpreter_is_refused_in_words_before_torch_is_imported() -> None:
    command = [sys.executable, "-c", OUTSIDE.format(inside=INSIDE.format(path=sys.path))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert done.stdout.startswith("opwright cannot be imported in a subinterpreter: PyTorch has one state"), done.stderr
    assert "hint: import it in the main interpreter" in done.stdout
    assert done.returncode == 0, done.stderr


def test_the_main_interpreter_is_not_refused() -> None:
    interpreter.refuse_subinterpreters()


def test_the_refusal_is_an_import_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "_is_main", lambda: False)
    with pytest.raises(InterpreterUnsupported) as refused:
        interpreter.refuse_subinterpreters()

    assert isinstance(refused.value, ImportError)
    assert isinstance(refused.value, OpwrightError)
