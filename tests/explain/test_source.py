"""Sources as people see them: only comments and layout differ from what is built."""

import inspect
import re
import shutil
from pathlib import Path

import pytest
import torch

import opwright
from opwright.errors import RungMissing, SamplesMissing
from opwright.explain import format_cpp as formatting
from opwright.explain.format_cpp import STYLE, format_cpp
from opwright.explain.source import source_text
from tests.explain.operators import CELL_SAMPLES, affine, cell, make

REPOSITORY = Path(__file__).parents[2]
OPERATORS = {"cell": (cell, CELL_SAMPLES), "affine": (affine, opwright.shapes("B F", "F S"))}


@pytest.fixture(params=OPERATORS)
def operator(request):
    return make(*OPERATORS[request.param])


def test_only_comments_and_layout_differ_from_what_is_built(operator):
    built = [format_cpp(source.text) for source in operator.derivation().plan.sources]
    assert without_comments(source_text(operator, "cpp")) == without_comments("\n".join(built))


def without_comments(text):
    return re.sub(r"^//.*\n", "", text, flags=re.MULTILINE)


def test_a_built_source_names_its_function_and_file_without_folders():
    for source in make(cell, CELL_SAMPLES).derivation().plan.sources:
        first, second, third = source.text.splitlines()[:3]
        assert re.fullmatch(
            r"// cell_(forward|backward), from cell in operators\.py\. Written by opwright; formatted by", first
        )
        assert second == "//   opwright source operators.py:cell --rung cpp"
        assert third == '#include "opwright/kernel.h"'
        assert str(REPOSITORY) not in source.text
        assert "\n//   new_cell = old_cell + elu(g)·σ(i)\n" in source.text or "backward" in source.name


def test_the_header_says_what_it_is_and_how_to_see_it_again(monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    text = source_text(make(cell, CELL_SAMPLES), "cpp")
    line = inspect.unwrap(cell).__code__.co_firstlineno
    for passage in ("forward", "backward"):
        assert (
            f"// cell, {passage}. Written by opwright {opwright.__version__} from cell at "
            f"tests/explain/operators.py:{line}; see it again with\n"
            "//   opwright source tests/explain/operators.py:cell --rung cpp\n"
        ) in text


def test_the_file_is_named_in_full_from_elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert f"from cell at {REPOSITORY}/tests/explain/operators.py:" in source_text(make(cell, CELL_SAMPLES), "cpp")


def test_no_command_is_given_where_the_command_line_cannot_find_the_operator():
    def inner(x: torch.Tensor):
        return x * 2

    text = source_text(make(inner, opwright.shapes("B")), "cpp")
    first, second = text.splitlines()[:2]
    assert re.search(r"from \S+<locals>\.inner at \S+test_source\.py:\d+\.$", first)
    assert second == '#include "opwright/kernel.h"'


def test_formulas_stand_above_the_kernel():
    lines = source_text(make(cell, CELL_SAMPLES), "cpp").splitlines()
    place = lines.index("//   new_cell = old_cell + elu(g)·σ(i)")
    assert lines[place + 2].startswith("static void cell_forward_row(")


def test_cuda_is_shown_as_kernels_and_launchers(operator):
    text = source_text(operator, "cuda")
    sources = operator.derivation().cuda_sources()
    for source in sources:
        assert f'"{source.name}"' in text
    built = "\n".join(format_cpp(part) for source in sources for part in (source.device, source.host))
    assert without_comments(text).split() == without_comments(built).split()
    assert "--rung cuda" in text


def test_formulas_stand_above_cuda_kernels():
    lines = source_text(make(cell, CELL_SAMPLES), "cuda").splitlines()
    place = lines.index("//   new_cell = old_cell + elu(g)·σ(i)")
    assert "struct cell_forward_points {" in lines[place + 2 : place + 4]


def test_other_rungs_are_shown_as_they_are_written():
    operator = make(affine, opwright.shapes("B F", "F S"))
    assert source_text(operator, "composed") == inspect.getsource(affine)
    assert source_text(operator, "function") == operator.function_source()


@pytest.mark.parametrize(
    ("rung", "message"),
    [
        ("rust", "there is no rung 'rust'\nhint: the rungs are composed, function, cpp, cuda"),
    ],
)
def test_what_is_not_written_is_refused(rung, message):
    with pytest.raises(RungMissing) as refusal:
        source_text(make(cell, CELL_SAMPLES), rung)
    assert str(refusal.value) == message


@pytest.mark.falls_back
def test_a_function_without_a_file_has_no_source():
    namespace = {}
    exec("import torch\ndef typed(x: torch.Tensor) -> torch.Tensor:\n    return x + 1\n", namespace)
    with pytest.raises(RungMissing, match=r"the source of typed cannot be read: .*\nhint: define it in a file"):
        source_text(make(namespace["typed"]), "composed")


@pytest.mark.parametrize("rung", ["cpp", "function"])
def test_without_samples_there_is_nothing_to_write(rung):
    with pytest.raises(SamplesMissing, match="cell has no samples"):
        source_text(make(cell), rung)


@pytest.mark.parametrize("program", [None, "/nowhere/clang-format", shutil.which("false")])
def test_without_a_formatter_that_works_the_text_stays(monkeypatch, program):
    monkeypatch.setattr(formatting.shutil, "which", lambda *_, **__: program)
    assert format_cpp("int  x ;\n") == "int  x ;\n"


def test_the_formatter_formats():
    assert format_cpp("int  x ;\n") == "int x;\n"


def test_the_style_is_that_of_the_file_in_the_repository():
    lines = (REPOSITORY / ".clang-format").read_text().splitlines()
    assert "{" + ", ".join(line for line in lines if not line.startswith("#")) + "}" == STYLE
