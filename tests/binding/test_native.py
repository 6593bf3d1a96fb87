"""The extension module is built beside the first calls, once, and nobody needs it."""

import multiprocessing
import os
import select
import sys
import threading
import time
from dataclasses import replace

import pytest

from opwright.binding.native import Native
from opwright.settings import Settings
from opwright.toolchain.headers.extension import Extension
from tests.executables import write_executable
from tests.keeping_compiler import keeping_compiler
from tests.quick_compiler import OPTIMIZING_NOTHING
from tests.suite.warm_python import start

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")

MODULE = """
#include <Python.h>
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "opwright_tape"};
PyMODINIT_FUNC PyInit_opwright_tape() { return PyModule_Create(&definition); }
"""


class User:
    """Remembers the module that it was given."""

    module = None

    def equip(self, module):
        self.module = module


@pytest.fixture
def settings(tmp_path):
    compiler = keeping_compiler(OPTIMIZING_NOTHING)
    return Settings(tmp_path / "cache", compiler, notify=False, tape="background")


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "tape.cpp").write_text(MODULE)
    return tmp_path / "sources"


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def starting(monkeypatch):
    """Processes that build it are forks, where nothing is about how they are started."""

    class Fork:
        def __init__(self, command, **_):
            self._started = start("-c", command[-1])

        def wait(self):
            self._started.communicate()

    monkeypatch.setattr("opwright.binding.native.start", Fork)


def test_who_asks_first_goes_on_without_it_and_is_given_it_later(directory, settings, starting):
    native, user, other = Native(directory), User(), User()
    native.equip(user, settings)
    native.equip(other, settings)
    wait_for(lambda: user.module and other.module)
    assert user.module is other.module
    assert user.module.__name__ == "opwright_tape"


def test_another_process_finds_it(directory, settings):
    Native(directory).equip(User(), replace(settings, tape="now"))
    user = User()
    Native(directory).equip(user, settings)
    assert user.module is not None


def test_it_is_not_built_where_it_is_off(directory, settings):
    user = User()
    Native(directory).equip(user, replace(settings, tape="off"))
    assert user.module is None
    assert not settings.cache_directory.exists()


def test_what_a_compiler_refused_is_not_tried_again(directory, settings):
    (directory / "tape.cpp").write_text("no C++")
    for policy in ("now", "background"):
        user = User()
        Native(directory).equip(user, replace(settings, tape=policy))
        assert user.module is None
    failed = list((settings.cache_directory / "failed").iterdir())
    assert len(failed) == 1


def test_a_frozen_application_uses_it_and_builds_none(directory, settings, monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    user = User()
    Native(directory).equip(user, settings)
    assert user.module is None
    assert not Extension(directory, "tape", settings).is_being_built()
    Native(directory).equip(User(), replace(settings, tape="now"))
    Native(directory).equip(user, settings)
    assert user.module is not None


@pytest.mark.nightly
def test_it_is_built_in_a_folder_with_a_file_of_the_name_of_torch(directory, settings, tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise SystemExit('the wrong module')")
    monkeypatch.chdir(tmp_path)
    user, native = User(), Native(directory)
    native.equip(user, settings)
    wait_for(lambda: user.module)


@pytest.mark.nightly
def test_a_forked_child_asks_for_itself(directory, settings, starting):
    native, waiting = Native(directory), User()
    native.equip(waiting, settings)
    native._building.join(0)
    assert waiting.module is None

    def ask():
        user = User()
        native.equip(user, settings)
        wait_for(lambda: user.module and waiting.module)

    child = multiprocessing.get_context("fork").Process(target=ask)
    child.start()
    child.join(60)
    assert child.exitcode == 0


def test_an_abandoned_build_leaves_no_compiler(directory, settings, tmp_path):
    number = tmp_path / "pid"
    hanging = f'case "$*" in *-shared*) echo $$ > {number}; exec sleep 600;; *) exec {settings.compiler} "$@";; esac'
    slow = write_executable(tmp_path / "slow-g++", f"#!/bin/sh\n{hanging}\n")
    native = Native(directory)
    native.equip(User(), replace(settings, compiler=str(slow)))
    wait_for(lambda: number.exists() and number.read_text().strip())
    compiler = os.pidfd_open(int(number.read_text()))
    native.abandon()
    assert select.select([compiler], [], [], 30)[0], "the compiler still runs"


def test_without_a_compiler_there_is_none(directory, settings):
    user = User()
    Native(directory).equip(user, replace(settings, compiler="/nowhere/g++"))
    assert user.module is None


def test_a_process_ends_while_nobody_is_being_equipped(settings, directory, monkeypatch):
    """A thread that is in C++ when Python ends aborts the process."""
    Extension(directory, "tape", settings).build()
    begun, events = threading.Event(), []

    class SlowUser:
        def equip(self, module):
            begun.set()
            time.sleep(0.3)
            events.append("equipped")

    native, user, late = Native(directory), SlowUser(), SlowUser()
    monkeypatch.setattr(native, "_module", None)
    native._waiting.add(user)
    waiting = threading.Thread(target=native._await, args=(Extension(directory, "tape", settings),))
    waiting.start()
    assert begun.wait(60)
    native._leave()
    events.append("left")
    waiting.join(60)
    native._module = None
    native._waiting.add(late)
    native._await(Extension(directory, "tape", settings))
    assert events == ["equipped", "left"]
