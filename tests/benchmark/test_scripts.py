"""The scripts of benchmarks/ run; what they measure is no matter of a test."""

import json
from pathlib import Path

import pytest

from tests.suite.warm_python import run

SCRIPTS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def card(tmp_path_factory):
    """Run one script, quickly, and read the JSON that it writes."""
    file = tmp_path_factory.mktemp("figures") / "new" / "saved_bytes.json"
    begin = "import runpy, sys, warnings; warnings.simplefilter('error'); sys.path.insert(0, sys.argv[1])"
    script = f"{begin}\nrunpy.run_path(sys.argv.pop(1) + '/saved_bytes.py', run_name='__main__')"
    done = run("-c", script, str(SCRIPTS), "--quick", "--json", str(file))
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(file.read_text())


def test_the_table_names_targets_and_machine(card):
    shown, _ = card
    assert "LLTM cell, saved for backward, float32; bytes" in shown
    assert "met: saved bytes / (inputs + one output), at most: 0.8 (target <= 1)" in shown
    assert "torch 2." in shown


def test_the_json_holds_the_same(card):
    _, record = card
    (benchmark,) = record["benchmarks"]
    (row,) = benchmark["rows"]
    inputs, output = 4 * 4 * 16 * 128, 4 * 16 * 128
    assert (row["figures"]["opwright"], row["figures"]["inputs"], row["figures"]["one output"]) == (
        inputs,
        inputs,
        output,
    )
    assert [target["met"] for target in benchmark["targets"]] == [True]
    assert record["quick"] is True
