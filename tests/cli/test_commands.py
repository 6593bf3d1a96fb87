import json
import re
from pathlib import Path

import pytest

from opwright.cli.main import main
from opwright.errors import Fault, NoKernel
from opwright.version import VERSION
from tests.suite.warm_python import run as run_warm

COMMANDS = (
    "check",
    "audit",
    "bench",
    "coverage",
    "explain",
    "source",
    "doctor",
    "eject",
    "new",
    "build",
    "deploy",
    "report",
    "cache",
)

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


AUDIT = ("audit", "--quick", "--only", "autograd: backward", "--only", "copies: no_grad")
THIRD_PARTY = (
    HEADER
    + """
import torch

class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        return 3 * g * ctx.saved_tensors[0] ** 2, None

def reference(x, y):
    return x ** 3

power = torch.ops.aten.pow.Tensor_Scalar
square = lambda x, y: x * x
samples = SAMPLES
"""
)


@pytest.mark.parametrize(("text", "code"), [(RIGHT, 0), (WRONG, 1)])
@pytest.mark.parametrize("command", [("check",), ("bench", "--no-compile"), AUDIT])
def test_the_exit_code_and_the_json_say_whether_it_passed(write_file, run, command, text, code):
    exit_code, out, err = run(*command, write_file(text), "--json")
    (result,) = json.loads(out)
    assert (exit_code, result["passed"], result["subject"]) == (code, code == 0, "scale")
    assert err == ""


def test_version_and_help(run):
    assert run("--version") == (0, f"opwright {VERSION}\n", "")
    for command in ((), *((name,) for name in COMMANDS), ("cache", "prune")):
        code, out, _ = run(*command, "-h")
        assert (code, "Usage:" in out, "--help" in out) == (0, True, True), command


def test_a_quick_check_leaves_out_what_takes_long(write_file, run):
    code, out, _ = run("check", write_file(RIGHT), "--quick", "--dtype", "float64", "--json")
    (result,) = json.loads(out)
    assert (code, result["passed"], result["quick"]) == (0, True, True)
    assert "gradgradcheck" in result["left_out"]
    assert {row["sample"] for row in result["rows"] if row["check"] == "values"} == {"B=4 S=33 float64"}
    assert "scale: PASSED the quick check" in run("check", write_file(RIGHT), "--quick")[1]
    assert run("check", write_file(WRONG), "--quick")[0] == 1


@pytest.mark.parametrize(("only", "code"), [("errors", 0), ("values", 1), ("no such check", 2)])
def test_only_some_checks(write_file, run, only, code):
    exit_code, out, err = run("check", write_file(WRONG), "--only", only)
    assert exit_code == code
    assert ("left out: " in out) is (code < 2)
    assert ("no check is called no such check\nhint: the checks are values" in err) is (code == 2)


def test_a_module_may_be_named(write_file, run, monkeypatch, tmp_path):
    write_file(RIGHT, "named_as_a_module.py")
    monkeypatch.chdir(tmp_path)
    assert run("explain", "named_as_a_module:op") == (0, "scale: one kernel\n", "")


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (KeyError("lost"), 3, r"error: opwright failed with KeyError: 'lost'"),
        (Fault("its kernels failed with ValueError: x"), 3, "error: its kernels failed with ValueError: x"),
        (NoKernel("complex numbers"), 2, "error: complex numbers$"),
        (PermissionError(13, "Permission denied", "/there"), 2, r"error: \[Errno 13\] Permission denied: '/there'$"),
    ],
)
def test_a_fault_of_ours_is_told_apart_and_keeps_its_trace(run, monkeypatch, tmp_path, error, code, sentence):
    def fails(*_):
        raise error

    monkeypatch.setattr("opwright.cli.commands.explain.load_operators", fails)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    exit_code, out, err = run("explain", "x.py")
    assert (exit_code, out) == (code, "")
    assert re.match(sentence, err, re.MULTILINE)
    assert "Traceback" not in err
    found = re.search("\nhint: please report it, with the traceback in (.*)\n", err)
    assert (found is not None) is (code == 3)
    if found:
        assert "in fails" in Path(found[1]).read_text()


@pytest.mark.parametrize(
    ("command", "text", "words"),
    [
        (("check",), RIGHT, ["scale: PASSED", "gradgradcheck"]),
        (("check",), WRONG, ["scale: FAILED", "failed cpp, values, B=4 S=33 float32: output 0 is wrong"]),
        (AUDIT, RIGHT, ["scale: PASSED (2 pass)", "no_grad"]),
        (AUDIT, WRONG, ["scale: FAILED", "silently wrong autograd, backward: gradient of input 0 at ["]),
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


@pytest.mark.parametrize(("name", "code", "subject"), [("Cube", 0, "Cube"), ("square", 1, "<lambda>")])
def test_what_is_not_ours_is_audited_by_the_reference_of_its_file(write_file, run, name, code, subject):
    exit_code, out, _ = run(*AUDIT, f"{write_file(THIRD_PARTY)}:{name}", "--json")
    (result,) = json.loads(out)
    assert (exit_code, result["subject"]) == (code, subject)


def test_what_is_not_ours_needs_a_reference(write_file, run):
    code, _, err = run(*AUDIT, f"{write_file(THIRD_PARTY)}:Cube", "--reference", "nowhere")
    assert code == 2
    assert "Cube is not an operator of opwright, and no reference is given" in err


@pytest.mark.parametrize("command", ["check", "audit", "bench", "explain", "source"])
def test_a_missing_file_ends_every_command_with_two(run, command):
    code, out, err = run(command, "nowhere.py")
    assert (code, out, err) == (2, "", "error: there is no file nowhere.py\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (WITHOUT_SAMPLES, "error: scale has no samples, so it cannot be {}\nhint: give the decorator"),
        (BROKEN_SAMPLES, "error: the samples of scale cannot be made: ZeroDivisionError: division by zero\n"),
    ],
)
@pytest.mark.parametrize(("command", "done"), [("check", "checked"), ("bench", "measured")])
def test_samples_that_are_missing_end_with_two(write_file, run, command, done, text, message):
    code, out, err = run(command, write_file(text))
    assert (code, out) == (2, "")
    assert err.startswith(message.format(done))


def test_a_dtype_that_torch_does_not_have_is_a_usage_error(write_file, run):
    code, out, err = run("bench", write_file(RIGHT), "--dtype", "float12")
    assert (code, out) == (2, "")
    assert "'float12' is not a torch dtype" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "wheels are the only format yet; add --wheel"),
        (("--wheel", "--dtype", "float12"), "'float12' is not a torch dtype"),
        (("--wheel",), "error: scale is not an operator of opwright, so a wheel cannot include it"),
    ],
)
def test_what_cannot_be_built_ends_with_two(write_file, run, tmp_path, options, message):
    code, out, err = run("build", write_file(RIGHT), "--to", str(tmp_path / "dist"), *options)
    assert (code, out) == (2, "")
    assert message in err
    assert not (tmp_path / "dist").exists()


def test_python_m_opwright_is_the_command_line():
    ended = run_warm("-m", "opwright", "check", "nowhere.py")
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", "error: there is no file nowhere.py\n")


@pytest.mark.nightly
def test_parts_in_processes_make_the_whole(write_file, run):
    """The same rows as in one process, in the same order, and what the file prints only once."""
    file = write_file("print('loaded')\n" + WRONG)
    rows = ("check", file, "--only", "values", "--only", "layouts", "--json")
    code, out, err = run(*rows)
    ended = run_warm("-m", "opwright", *rows)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, out, err)
    assert (code, out.count("loaded")) == (1, 1)


def test_an_interrupt_ends_what_was_started(monkeypatch):
    abandoned = []

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("opwright.binding.native.native.abandon", lambda: abandoned.append(True))
    monkeypatch.setattr("opwright.cli.commands.audit.load_subjects", interrupted)
    with pytest.raises(SystemExit) as end:
        main(["audit", "operators.py"])
    assert (end.value.code, abandoned) == (130, [True])


def test_extras_are_not_taken_for_markup(capsys):
    with pytest.raises(SystemExit):
        main(["report", "--help"])
    assert "opwright[report]" in capsys.readouterr().out
