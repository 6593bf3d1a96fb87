"""The ready operators as they are found: cheap to import, described, with samples; at night, checked and audited."""

import inspect

import pytest
import torch

import opwright
from opwright.library.samples import MEASURED
from tests.suite.warm_python import run as run_warm

NAMES = sorted(opwright.library.__all__)


def test_they_are_loaded_where_they_are_asked_for():
    asked = (
        "import opwright, sys; before = 'opwright.library' in sys.modules; print(before, opwright.library.swiglu.name)"
    )
    ran = run_warm("-c", asked)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["False", "opwright_library::swiglu"]


@pytest.mark.parametrize("name", NAMES)
def test_it_is_described(name):
    operator = getattr(opwright.library, name)
    text = inspect.getdoc(operator.reference)
    summary, formula, *_ = text.split("\n\n")
    assert summary.endswith(".")
    assert "\n" not in summary
    assert formula.startswith("    ")
    assert all(f"\n{section}:\n    " in text for section in ("Args", "Returns", "Raises", "Source"))
    assert all(f"\n    {parameter}: " in text for parameter in inspect.signature(operator.reference).parameters)


@pytest.mark.parametrize("name", NAMES)
def test_it_does_not_take_the_place_of_a_users_operator(name):
    assert getattr(opwright.library, name).name == f"opwright_library::{name}"


@pytest.mark.parametrize("name", NAMES)
def test_its_samples_are_calls_of_it(name):
    operator = getattr(opwright.library, name)
    for dtype in (torch.float32, torch.bfloat16):
        sample = operator.samples("cpu", dtype)[0]
        outputs = operator.reference(*sample.args)
        for output in outputs if isinstance(outputs, tuple) else (outputs,):
            assert output.dtype == dtype
            assert output.isfinite().all()
    sizes = [operator.samples.measured(size, "cpu", torch.float32) for size in MEASURED[:2]]
    assert sizes[0].args[0].numel() < sizes[1].args[0].numel()


@pytest.mark.nightly
@pytest.mark.seconds(600)
@pytest.mark.parametrize("name", NAMES)
def test_it_passes_check(name):
    verdict = getattr(opwright.library, name).check()
    assert verdict.passed, verdict


@pytest.mark.nightly
@pytest.mark.seconds(900)
@pytest.mark.parametrize("name", NAMES)
def test_it_passes_audit(name):
    card = opwright.audit(getattr(opwright.library, name), quick=True)
    red = [row for row in card.red if not (row.name == "nested" and _NOT_NESTED in row.detail)]
    assert not red, red


# What PyTorch's rules of `cat` and `gather` under `vmap` say where one is nested in another and sizes are symbols.
_NOT_NESTED = "Cannot call sizes() on tensor with symbolic sizes/strides"
