from __future__ import annotations

import json

import pytest

from tests.suite.nights import mostly_at_night


@pytest.mark.parametrize(("compiler", "code"), mostly_at_night([("/no/such/compiler", 1), (None, 0)], by_day=1))
def test_the_exit_code_and_the_json_say_whether_the_machine_works(run, monkeypatch, compiler, code):
    if compiler:
        monkeypatch.setenv("CXX", compiler)
    exit_code, out, err = run("doctor", "--json")
    examination = json.loads(out)

    assert (exit_code, examination["passed"], err) == (code, code == 0, "")
    assert {"name", "state", "detail", "remedy"} == set(examination["findings"][0])


def test_the_table_is_on_stdout(run, monkeypatch):
    monkeypatch.setenv("CXX", "/no/such/compiler")
    exit_code, out, _ = run("doctor")

    assert exit_code == 1
    assert out.startswith("this machine: BROKEN (C++ compiler, a kernel)\n")
    assert "mend C++ compiler: unset CXX\n" in out
    assert "\x1b" not in out
