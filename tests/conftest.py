"""One cache directory for the whole run, shared by its workers, so that each kernel is built once, and quickly."""

import contextlib
import os

# Threads that spin take the cores of the other workers. OpenMP reads this when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import sys

import pytest

from tests.keeping_compiler import keeping_compiler
from tests.quick_compiler import OPTIMIZING_NOTHING, use_quick_compiler
from tests.quiet_settings import quiet_settings
from tests.suite import backwards, frozen, loggers, part, warm_python
from tests.suite.built_together import one_file_each_way
from tests.suite.forks.plugin import Forks
from tests.suite.hangs import Hangs
from tests.suite.hot_path_ahead import hot_path_built_ahead
from tests.suite.kept_libraries import cache_of_a_run, folder_of
from tests.suite.products import survive_products
from tests.suite.reach import Since
from tests.suite.rehearsal import Rehearsal
from tests.suite.sweep_record import SweepRecord
from tests.suite.taken_names import TakenNames
from tests.suite.time_limit import TimeLimit

pytest_plugins = ("pytester",)  # tests of what is in suite/
_WORKER = "PYTEST_XDIST_WORKER"
_run = contextlib.ExitStack()
_time_limit = TimeLimit()


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write what is emitted over the expected files")
    parser.addoption(
        "--other-python", action="append", default=[], help="a Python with another torch, to try wheels on"
    )
    parser.addoption("--record-sweeps", action="store_true", help="write down what of the nightly sweeps was run")
    parser.addoption("--since", metavar="REVISION", help="run the tests that what changed since then can reach")
    parser.addoption("--part", metavar="I/N", default="", help="run one of N parts of the tests, such as 2/5")
    parser.addini("hang_limit", "the seconds after which a process ends whose test hangs; none if 0", default="0")
    parser.addoption("--forks", metavar="N", type=int, default=0, help="run the tests in N forks of this process")
    parser.addoption("--backwards", action="store_true", help="run the last test first, to find those that need others")


def pytest_configure(config):
    os.environ["COLUMNS"] = "100"  # as wide as results are shown where there is no terminal
    hangs = Hangs(float(config.getini("hang_limit")))
    for plugin in (backwards, frozen, loggers, part, _time_limit, hangs, Rehearsal(folder_of(config))):
        config.pluginmanager.register(plugin)
    processes = getattr(config.option, "numprocesses", None)  # of pytest-xdist
    if forks := config.getoption("--forks"):
        if forks < 0 or processes:
            raise pytest.UsageError("--forks takes a number of workers, and not beside -n")
        config.pluginmanager.register(Forks(forks))
    workers = forks or processes
    if config.getoption("--record-sweeps"):
        if _WORKER in os.environ or workers:
            raise pytest.UsageError("sweeps are recorded in one process: leave out --forks and -n")
        config.pluginmanager.register(SweepRecord(config.rootpath))
    if config.getoption("--since"):
        config.pluginmanager.register(Since.of(config))
    if _WORKER not in os.environ:
        if not workers:
            config.pluginmanager.register(TakenNames())  # which tests share a worker is chance
        folder = folder_of(config)
        os.environ["OPWRIGHT_CACHE"] = str(_run.enter_context(cache_of_a_run(folder)))
        use_quick_compiler(folder / "compilers")
        survive_products()
        os.environ.setdefault("OPWRIGHT_PATIENCE", "unlimited")
        os.environ.setdefault("OPWRIGHT_TAPE", "now")  # tests ask what users get once it is built
        os.environ.setdefault("OPWRIGHT_STRICT", "1")  # a test that falls back says so, by its marker
        if forks:
            warm_python.begin()
        if workers:
            _run.enter_context(hot_path_built_ahead())


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("falls_back"):
            item.add_marker(pytest.mark.filterwarnings("ignore::opwright.FallbackWarning"))


def pytest_collection_finish():
    """The hot path is built once, by the first test that needs it; the kernels of a call are built as one file."""
    if "opwright.binding.variants.variants" in sys.modules:
        _run.enter_context(one_file_each_way())
    if native := sys.modules.get("opwright.binding.native"):
        native.Extension.build = _time_limit.uncounted(native.Extension.build)


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


@pytest.fixture(scope="module")
def compiled_once(extension):
    """The compiler of the environment keeps what it makes; the hot path is built before, by the usual one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CXX", keeping_compiler(OPTIMIZING_NOTHING))
        yield


def pytest_unconfigure():
    _run.close()


@pytest.fixture(scope="session")
def extension():
    """What operators play tapes and compare guards with: the native module."""
    from opwright.binding.native import native
    from opwright.settings import Settings

    class Taker:
        def equip(self, module):
            self.module = module

    taker = Taker()
    native.equip(taker, Settings.from_environment())
    native.wait(300)
    return taker.module
