"""What can be audited, and what is said of it."""

import pytest
import torch

import opwright
from opwright.auditing import Options, Row, Scorecard
from opwright.auditing.cases import cases_of
from opwright.checking.subject import subject_of
from opwright.errors import ReferenceMissing, SamplesMissing
from tests.auditing import planted
from tests.fake_operator import FakeOperator, scale

SAMPLES = opwright.shapes("B S", "B S", B=4, S=8)
BRIEFLY = {"quick": True, "only": ("autograd", "copies")}


def states(scorecard):
    return {row.name: row.state for row in scorecard.rows}


@pytest.mark.parametrize(
    ("subject", "reference", "name"),
    [
        (planted.rewritten, planted.cell, "rewritten"),
        (planted.Cell, planted.cell, "Cell"),
        (planted.Cell.apply, planted.cell, "apply"),
        (torch.ops.aten.mul, planted.multiply, "aten::mul"),
        (torch.ops.aten.mul.Tensor, planted.multiply, "aten::mul"),
        (planted.plain, planted.multiply, "opwright_planted::plain"),
        (torch.ops.opwright_planted.plain, planted.multiply, "opwright_planted::plain"),
    ],
)
def test_callables_functions_and_registered_operators_are_audited(subject, reference, name):
    scorecard = opwright.audit(subject, reference, SAMPLES, quick=True, only=("copies", "autograd: retain_graph"))
    assert scorecard.subject == name
    assert states(scorecard)["pickle of a module"] == "pass", str(scorecard)
    assert (states(scorecard)["retain_graph"] == "pass") == (name != "opwright_planted::plain")


def test_an_operator_knows_its_reference_and_its_samples():
    scorecard = opwright.audit(FakeOperator(scale, SAMPLES), **BRIEFLY)
    assert (scorecard.subject, scorecard.passed) == ("scale", True), str(scorecard)


@pytest.mark.parametrize(
    ("subject", "reference", "samples", "refusal", "message"),
    [
        (
            planted.cell,
            None,
            SAMPLES,
            ReferenceMissing,
            "cell is not an operator of opwright, and no reference is given",
        ),
        (planted.cell, planted.cell, None, SamplesMissing, "cell has no samples, so it cannot be audited"),
        (planted.cell, planted.cell, lambda device, dtype: [], SamplesMissing, "the samples of cell are empty"),
        (planted.cell, planted.cell, lambda device, dtype: 1 / 0, SamplesMissing, "cannot be made: ZeroDivisionError"),
        (planted.cell, lambda x: x, SAMPLES, SamplesMissing, "does not take its sample: TypeError"),
    ],
)
def test_what_cannot_be_audited_is_refused(subject, reference, samples, refusal, message):
    with pytest.raises(refusal, match=message):
        opwright.audit(subject, reference, samples)


def test_only_some_rows_and_progress():
    told = []
    scorecard = opwright.audit(planted.cell, planted.cell, SAMPLES, only=("hooks",), progress=lambda *s: told.append(s))
    assert {row.family for row in scorecard.rows} >= {"hooks"}
    assert told[0] == ("hooks: tensor hooks", 0, len(scorecard.rows))
    assert [done for _, done, _ in told] == list(range(len(scorecard.rows)))


def test_a_function_that_changes_its_arguments_is_given_copies():
    def in_place(x, y):
        return x.mul_(torch.sin(y))

    def forgetful(x, y):
        return x * torch.sin(y)

    _, reference = cases_of(subject_of(in_place, in_place, SAMPLES, ""), Options())
    assert reference.changed == {0}
    assert opwright.audit(in_place, in_place, SAMPLES, **BRIEFLY).passed
    assert "got 0." not in str(opwright.audit(forgetful, in_place, SAMPLES, only=("autograd: backward",)).rows[0])
    assert not opwright.audit(forgetful, in_place, SAMPLES, only=("autograd: backward",)).passed


def test_containers_numbers_and_integers_are_held():
    def chosen(parts, index, *, by):
        return {"sum": parts["a"] * by + parts["b"][0].index_select(0, index), "index": index + 1}

    def factory(device, dtype):
        tensors = torch.arange(12.0, dtype=dtype).reshape(4, 3), torch.arange(15.0, dtype=dtype).reshape(5, 3)
        yield opwright.Sample(({"a": tensors[0], "b": [tensors[1]]}, torch.tensor([4, 0, 2, 2])), {"by": 2.5})

    scorecard = opwright.audit(
        chosen, chosen, factory, quick=True, only=("autograd", "torch.func", "vmap", "memory"), steps=50
    )
    assert scorecard.passed, str(scorecard)
    assert states(scorecard)["integers too"] == "pass"
    off = opwright.audit(lambda *a, by: chosen(*a, by=by + 1e-6), chosen, factory, only=("autograd: backward",))
    assert off.red[0].detail.startswith("gradient of input 0 at [")


def test_a_scorecard_in_words_and_as_json():
    rows = (Row("vmap", "nested", "pass"), Row("hooks", "anomaly mode", "raises", "RuntimeError: no"))
    scorecard = Scorecard("cell", rows)
    first, *_, last = repr(scorecard).splitlines()
    assert first == "cell: FAILED (1 pass, 1 raises)"
    assert last == "raises hooks, anomaly mode: RuntimeError: no"
    assert "RuntimeError: no" in scorecard._repr_html_()
    assert scorecard.to_json() == {
        "subject": "cell",
        "passed": False,
        "rows": [
            {"family": "vmap", "name": "nested", "state": "pass", "detail": ""},
            {"family": "hooks", "name": "anomaly mode", "state": "raises", "detail": "RuntimeError: no"},
        ],
    }
    assert Scorecard("cell", rows[:1]).passed
    assert not Scorecard("cell", (Row("vmap", "nested", "skipped", "why"),)).passed
