import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.keeping_compiler import keeping_compiler
from tests.quick_compiler import OPTIMIZING_LITTLE
from tests.suite.warm_python import run

OPERATORS = Path(__file__).parent / "shipped/operators.py"
JUDGE = Path(__file__).parent / "shipped/judge.py"
PACKAGE = "shipped_operators"


def built(targets, folder, *options, **variables):
    """Build a wheel for float32 by the command line, with a compiler that is quick; return what the command says."""
    named = ("--name", "shipped-operators", "--dtype", "float32", "--json", *options)
    environment = {**os.environ, "CXX": keeping_compiler(OPTIMIZING_LITTLE), **variables}
    done = run("-m", "opwright", "build", *targets, "--wheel", "--to", str(folder), *named, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def unpacked(wheel, folder):
    """Unpack a wheel, which is all that installing one of ours does."""
    shutil.unpack_archive(wheel, folder, "zip")
    return folder


def installed(wheel, folder, python=sys.executable):
    """Install a wheel into a folder of its own by pip."""
    install = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    subprocess.run([*install, "--target", str(folder), str(wheel)], check=True)
    return folder


def judged(folder, *cases, python=sys.executable, **environment):
    """Judge an installed wheel in a process that has neither opwright nor anything on its PATH.

    It is a fork, unless it has to be another Python, or torch has to read an environment of its own.
    """
    bare = {"PATH": "", "PYTHONPATH": str(folder), "HOME": str(folder), **environment}
    if environment or python != sys.executable:
        command = [python, str(JUDGE), PACKAGE, *cases]
        done = subprocess.run(command, capture_output=True, text=True, env=bare, cwd=folder, check=False)
    else:
        begin = "import runpy, sys; runpy.run_path(sys.argv.pop(1), run_name='__main__')"
        done = run("-c", begin, str(JUDGE), PACKAGE, *cases, env=bare, cwd=folder, having="torch")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """What the command says of a wheel of one operator."""
    return built([f"{OPERATORS}:cell"], tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def site(wheel, tmp_path_factory):
    """Where that wheel is."""
    return unpacked(wheel["path"], tmp_path_factory.mktemp("site"))
