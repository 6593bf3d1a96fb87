"""explain() on operators with and without kernels."""

import re
from pathlib import Path

import pytest
import torch

import opwright
from opwright.errors import SamplesMissing
from opwright.explain.explain import AS_CALLED, explanation
from opwright.report.figures import in_units
from tests.explain.operators import CELL_SAMPLES, affine, cast, cell, make

CELL = make(cell, CELL_SAMPLES, "explain_tests")
AFFINE = make(affine, opwright.shapes("B F", "F S", B=3, F=5, S=7))
CAST = make(cast, opwright.shapes("B", B=4))
UNKNOWN = make(cell)


def sections(text):
    """The lines of each section, without their margin; the head is under the empty title."""
    head, *rest = text.split("\n\n")
    found = {"": head.splitlines()}
    for part in rest:
        title, *lines = part.splitlines()
        assert all(line.startswith("  ") for line in lines)
        found[title] = [line[2:] for line in lines]
    return found


@pytest.fixture(scope="module")
def texts():
    operators = {"cell": CELL, "affine": AFFINE, "cast": CAST, "unknown": UNKNOWN}
    return {name: explanation(operator) for name, operator in operators.items()}


@pytest.fixture(scope="module")
def explained(texts):
    return {name: sections(text) for name, text in texts.items()}


@pytest.mark.parametrize(
    ("name", "section", "lines"),
    [
        ("cell", "", ["explain_tests::cell(Tensor gates, Tensor old_cell) -> (Tensor, Tensor)"]),
        ("cell", "Traced for", ["gates: float32[16, 384]", "old_cell: float32[16, 128]"]),
        ("cell", "Valid for", ["gates: float32[gates_size_0, 3*old_cell_size_1]"]),
        ("cell", "Graph", ["forward   8 operations: split_with_sizes, elu, sigmoid ×2, mul ×2, add, tanh"]),
        ("cell", "Forward", ["            new_cell = old_cell + elu(g)·σ(i)"]),
        ("cell", "Forward", ["kernel    new_cell over gates_size_0 × old_cell_size_1: 9 operations, fused"]),
        (
            "cell",
            "Saved for backward",
            [
                "gates     float32[16, 384]  24.6 kB  an argument",
                "old_cell  float32[16, 128]  8.19 kB  an argument",
                "together 32.8 kB; the arguments are 32.8 kB, the outputs 16.4 kB",
            ],
        ),
        ("cell", "Rungs", ["composed  the function as written"]),
        ("affine", "Traced for", ["slope = 0.5"]),
        ("affine", "Forward", ["library   mm = mm(x, weight)"]),
        ("affine", "Valid for", ["weight: float32[x_size_1, weight_size_1]"]),
        ("cast", "Last call", ["none in this process"]),
    ],
)
def test_sections_say(explained, name, section, lines):
    found = explained[name][section]
    start = found.index(lines[0])
    assert found[start : start + len(lines)] == lines


def test_an_intermediate_is_saved_only_with_library_calls(explained):
    rows = {name: "\n".join(explained[name]["Saved for backward"]) for name in ("cell", "affine")}
    assert "an intermediate, written by forward" in rows["affine"]
    assert "an intermediate" not in rows["cell"]


def test_the_place_is_a_line_of_the_file(explained, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    assert re.fullmatch(
        r"explain_tests::cell, from cell at tests/explain/operators\.py:\d+", explanation(CELL).splitlines()[0]
    )


@pytest.mark.parametrize(("name", "words"), [("cast", "float8_e5m2"), ("unknown", "cell has no samples")])
def test_without_kernels_it_says_why_and_what_is_known(explained, name, words):
    found = explained[name]
    assert words in " ".join(found["Kernels"])
    assert list(found) == ["", "Kernels", "Rungs", "Last call"]


@pytest.mark.parametrize("name", ["cell", "affine", "cast", "unknown"])
def test_it_fits_on_a_terminal(texts, name):
    after_the_path = texts[name].splitlines()[1:]
    assert max(map(len, after_the_path)) <= 100


@pytest.mark.falls_back
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda operator: operator.reference, "none in this process"),
        (lambda operator: operator.on("composed"), "served by composed: it was pinned to it, or cpp does not support"),
        (lambda operator: operator.on("function"), "served by function, to which it was pinned"),
        (lambda operator: operator, "served by cpp, the fastest rung here"),
    ],
)
def test_the_last_call_is_told(call, words):
    operator = make(cell, CELL_SAMPLES)
    call(operator)(torch.ones(2, 6), torch.ones(2, 2))
    assert " ".join(sections(explanation(operator))["Last call"]).startswith(words)


def test_a_half_type_as_default_is_told():
    operator = make(cell, CELL_SAMPLES)
    torch.set_default_dtype(torch.bfloat16)
    try:
        operator(torch.ones(2, 6), torch.ones(2, 2))
        told = " ".join(sections(explanation(operator))["Last call"])
    finally:
        torch.set_default_dtype(torch.float32)
    assert told.startswith("served by composed: torch's default dtype is torch.bfloat16")


@pytest.mark.parametrize(
    ("size_bytes", "text"), [(0, "0 bytes"), (999, "999 bytes"), (8192, "8.19 kB"), (12_345_678, "12.3 MB")]
)
def test_bytes_have_three_figures(size_bytes, text):
    assert in_units(size_bytes) == text


def test_the_profile_has_every_stage_and_the_compilers() -> None:
    operator = make(cell, CELL_SAMPLES)
    before = " ".join(sections(explanation(operator))["Derived in"])
    for stage in ("trace", "choose what to save", "lay out", "lower", "optimize", "emit"):
        assert re.search(rf"{stage} \d+\.\d\d\d", before)
    assert "compilers" not in before
    operator(torch.ones(2, 6), torch.ones(2, 2))
    assert "compilers took" in " ".join(sections(explanation(operator))["Derived in"])


CALLED = {
    "flat": (lambda x, p=2.0: x.relu() ** p, lambda: (torch.randn(4, 3),), "x: float32[4, 3]"),
    "in a dict": (
        lambda d: d["a"].tanh() * 3,
        lambda: ({"a": torch.randn(6, dtype=torch.float64)},),
        "d_a: float64[6]",
    ),
    "transposed": (lambda x: x.exp() * 2, lambda: (torch.randn(4, 3).t(),), "x: float32[3, 4]"),
}


@pytest.mark.parametrize(("function", "arguments", "traced"), CALLED.values(), ids=CALLED)
def test_without_samples_a_call_like_the_last_is_told(function, arguments, traced):
    operator = opwright.operator(function)
    with pytest.raises(SamplesMissing, match="nothing is known of its arguments before a call"):
        operator.source()
    operator(*arguments())
    found = sections(str(operator.explain()))
    assert found["Traced for"][0] == traced
    assert found["Traced for"][-1] == AS_CALLED
    assert "Registration" in operator.source()


def test_without_samples_it_is_told_why_the_last_call_had_no_kernels(monkeypatch):
    monkeypatch.setenv("OPWRIGHT_STRICT", "")
    refused = opwright.operator(lambda x: x * 2 if x.sum() > 0 else x)
    with pytest.warns(opwright.FallbackWarning):
        refused(torch.ones(3))
    told = " ".join(sections(str(refused.explain()))["Kernels"])
    assert "looks at the values of a tensor to decide what to do next" in told


def test_samples_go_before_calls():
    operator = opwright.operator(lambda x: x.exp() * 2, samples=opwright.shapes("B", B=5))
    operator(torch.randn(3))
    assert sections(str(operator.explain()))["Traced for"] == ["x: float32[5]"]


def scored(x, mean, log_scale):
    scaled = (x - mean) * torch.exp(-log_scale)
    return (scaled**2 + log_scale).mean(-1)


def test_cotangents_of_variables_are_called_after_them():
    formulas = " ".join(sections(explanation(make(scored, opwright.shapes("B H", "B H", "B H"))))["Backward"])
    assert "grad_scaled = " in formulas
    assert "grad_mean = -grad_x" in formulas


def unnamed(x, y):
    return torch.where((-x).unsqueeze(0).expand(2, -1) > y, x, y).sum(0) * (-x).unsqueeze(0).sum(0)


def test_no_value_is_called_after_a_view():
    formulas = " ".join(sections(explanation(make(unnamed, opwright.shapes("H", "2 H"))))["Backward"])
    assert not re.search(r"\b(unsqueeze|expand|view)(_\d+)? = ", formulas)
