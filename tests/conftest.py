"""One cache directory for the whole run, shared by its workers, so that each kernel is built once, and quickly."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.quick_compiler import use_quick_compiler
from tests.quiet_settings import quiet_settings

_WORKER = "PYTEST_XDIST_WORKER"


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write what is emitted over the expected files")
    parser.addoption(
        "--other-python", action="append", default=[], help="a Python with another torch, to try wheels on"
    )


def pytest_configure():
    if _WORKER not in os.environ:
        os.environ["OPWRIGHT_CACHE"] = tempfile.mkdtemp(prefix="opwright-tests-")
        use_quick_compiler(Path(os.environ["OPWRIGHT_CACHE"], "compilers"))
        os.environ.setdefault("OPWRIGHT_TAPE", "now")  # tests ask what users get once it is built
        os.environ.setdefault("OPWRIGHT_STRICT", "1")  # a test that falls back says so, by its marker


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("falls_back"):
            item.add_marker(pytest.mark.filterwarnings("ignore::opwright.FallbackWarning"))


@pytest.fixture(autouse=True)
def _fallbacks(request, monkeypatch):
    """Under @pytest.mark.falls_back a call may run its reference, for operators made before the test too."""
    if request.node.get_closest_marker("falls_back"):
        monkeypatch.setenv("OPWRIGHT_STRICT", "")
        monkeypatch.setattr("opwright.binding.fallbacks.Fallbacks.is_strict", False)


@pytest.fixture
def told(recwarn):
    """Gives what operators have said by now of falling back."""
    from opwright.errors import FallbackWarning

    return lambda: [str(warning.message) for warning in recwarn if warning.category is FallbackWarning]


@pytest.fixture(params=["quick", pytest.param("optimized", marks=pytest.mark.nightly)])
def settings_quick_by_day(request):
    """Kernels built without optimization by day, and at night as users build them too."""
    return quiet_settings(optimized=request.param == "optimized")


def pytest_unconfigure():
    if _WORKER not in os.environ:
        shutil.rmtree(os.environ.pop("OPWRIGHT_CACHE"), ignore_errors=True)
