import json
import subprocess
import sys

import pytest

HEADER = """
import opwright.samples
from tests.fake_operator import FakeOperator, scale

SAMPLES = opwright.samples.shapes("B S", "B S", B=4, S=33)

def wrong(x, y):
    return scale(x, y) * 1.001

"""
RIGHT = HEADER + "op = FakeOperator(scale, SAMPLES, {'cpp': lambda x, y: scale(x, y)})\n"
WRONG = HEADER + "op = FakeOperator(scale, SAMPLES, {'cpp': wrong})\n"
WITHOUT_SAMPLES = HEADER + "op = FakeOperator(scale)\n"
BROKEN_SAMPLES = HEADER + "op = FakeOperator(scale, lambda device, dtype: 1 / 0)\n"


@pytest.mark.parametrize(("text", "code"), [(RIGHT, 0), (WRONG, 1)])
@pytest.mark.parametrize("command", [("check",), ("bench", "--no-compile")])
def test_the_exit_code_and_the_json_say_whether_it_passed(write_file, run, command, text, code):
    exit_code, out, err = run(*command, write_file(text), "--json")
    (result,) = json.loads(out)
    assert (exit_code, result["passed"], result["subject"]) == (code, code == 0, "scale")
    assert err == ""


@pytest.mark.parametrize(
    ("command", "text", "words"),
    [
        (("check",), RIGHT, ["scale: PASSED", "gradgradcheck"]),
        (("check",), WRONG, ["scale: FAILED", "failed cpp, values, B=4 S=33 float32: output 0 is wrong"]),
        (("bench", "--no-compile"), RIGHT, ["scale, float32 on cpu", "vs compile"]),
        (("bench", "--no-compile", "--dtype", "float64"), WRONG, ["scale, float64 on cpu", "cpp WRONG"]),
        (("explain",), RIGHT, ["scale: one kernel"]),
        (("source",), RIGHT, ["// cpp of scale"]),
        (("source", "--rung", "function"), RIGHT, ["// function of scale"]),
    ],
)
def test_tables_and_texts_are_on_stdout(write_file, run, command, text, words):
    _, out, err = run(*command, write_file(text))
    for each in words:
        assert each in out
    assert err == ""
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("command", "key", "text"), [("explain", "explanation", "one kernel"), ("source", "source", "// cpp of scale")]
)
def test_texts_come_as_json_too(write_file, run, command, key, text):
    code, out, _ = run(command, write_file(RIGHT) + ":op", "--json")
    (result,) = json.loads(out)
    assert code == 0
    assert result["operator"] == "scale"
    assert text in result[key]


@pytest.mark.parametrize("command", ["check", "bench", "explain", "source"])
def test_a_missing_file_ends_every_command_with_two(run, command):
    code, out, err = run(command, "nowhere.py")
    assert (code, out, err) == (2, "", "error: there is no file nowhere.py\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (WITHOUT_SAMPLES, "error: scale has no samples, so it cannot be checked or measured\nhint: give the decorator"),
        (BROKEN_SAMPLES, "error: the samples of scale cannot be made: ZeroDivisionError: division by zero\n"),
    ],
)
@pytest.mark.parametrize("command", ["check", "bench"])
def test_samples_that_are_missing_end_with_two(write_file, run, command, text, message):
    code, out, err = run(command, write_file(text))
    assert (code, out) == (2, "")
    assert err.startswith(message)


def test_a_dtype_that_torch_does_not_have_is_a_usage_error(write_file, run):
    code, out, err = run("bench", write_file(RIGHT), "--dtype", "float12")
    assert (code, out) == (2, "")
    assert "'float12' is not a dtype of torch" in err


def test_python_m_opwright_is_the_command_line():
    ended = subprocess.run(
        [sys.executable, "-m", "opwright", "check", "nowhere.py"], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", "error: there is no file nowhere.py\n")
