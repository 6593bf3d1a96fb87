"""Plant one fault at a time into a right operator: the rows named for it turn red, and each row can."""

from importlib.util import find_spec

import pytest
import torch

import opwright
from opwright.auditing import Options
from opwright.auditing.cases import cases_of
from opwright.auditing.families.table import FAMILIES
from opwright.checking.subject import subject_of
from tests.auditing import planted

SAMPLES = opwright.shapes("B S", "B S", B=4, S=8)
JUDGES = {f"{family}: {judge.name}": (family, judge) for family, judges in FAMILIES.items() for judge in judges}

WRONG, RAISES = "silently wrong", "raises"

# (subject, reference, what it does to the rows)
FAULTS = [
    (
        planted.OnceDifferentiable,
        planted.cell,
        WRONG,
        ["autograd: gradient penalty", "autograd: second order (create_graph)"],
    ),
    (
        planted.SavedIntermediate,
        planted.cell,
        WRONG,
        [
            "autograd: second order (create_graph)",
            "autograd: third order",
            "autograd: gradient penalty",
            "numerical derivatives: gradgradcheck",
            "numerical derivatives: gradgradcheck, batched gradients",
        ],
    ),
    (
        planted.NumericallyWrong,
        planted.cell,
        WRONG,
        ["numerical derivatives: gradcheck", "numerical derivatives: gradcheck, batched gradients"],
    ),
    (planted.SwappedWhenPartial, planted.cell, WRONG, ["autograd: each subset of inputs"]),
    (planted.NoneForUnused, planted.cell, WRONG, ["autograd: each output alone"]),
    (planted.SpoiltByBackward, planted.cell, WRONG, ["autograd: retain_graph"]),
    (planted.SecondStepDoubled, planted.cell, WRONG, ["autograd: two steps accumulate"]),
    (planted.confused_by_one_tensor, planted.cell, WRONG, ["autograd: same tensor passed twice"]),
    (planted.BlindToStrideZero, planted.cell, WRONG, ["autograd: cotangents of odd layouts"]),
    (
        planted.KeptAside,
        planted.cell,
        WRONG,
        [
            "autograd: input changed before backward",
            "memory tools: nothing is kept aside",
        ],
    ),
    (planted.SpoiltAside, planted.cell, WRONG, ["autograd: freed graph"]),
    (planted.AddsToGrad, planted.cell, WRONG, ["hooks: tensor hooks"]),
    (planted.nan_on_the_way, planted.cell, RAISES, ["hooks: anomaly mode"]),
    (
        planted.ZeroTangents,
        planted.cell,
        WRONG,
        [
            "torch.func: jvp",
            "torch.func: linearize",
            "torch.func: jacfwd",
            "vmap: vmap of jvp",
            "forward mode: dual inputs",
            "forward mode: one dual input",
            "numerical derivatives: gradcheck, forward mode",
            "numerical derivatives: gradcheck, forward mode, batched",
        ],
    ),
    (
        planted.TangentsLostInBackward,
        planted.cell,
        WRONG,
        [
            "torch.func: jvp of grad",
            "forward mode: a dual cotangent",
            "numerical derivatives: gradgradcheck, forward over reverse",
        ],
    ),
    (planted.WithTangents, planted.cell, WRONG, ["torch.func: jvp of jvp", "torch.func: jacfwd of jacfwd"]),
    (planted.Cell, planted.cell, RAISES, ["torch.func: grad", "torch.func: jvp", "vmap: in_dims=0"]),
    (planted.WrongBatchAxis, planted.cell, WRONG, ["vmap: in_dims=-1, out_dims=-1"]),
    (planted.other_when_compiled, planted.cell, WRONG, ["torch.compile: forward", "torch.export: export"]),
    (planted.breaks_the_graph, planted.cell, RAISES, ["torch.compile: forward", "torch.export: export"]),
    (planted.compiled_for_each_size, planted.cell, WRONG, ["torch.compile: recompilations"]),
    (planted.liar, planted.multiply, WRONG, ["fake and meta: fake tensors", "fake and meta: meta tensors"]),
    (planted.fixed, planted.multiply, WRONG, ["fake and meta: symbolic sizes"]),
    (
        planted.product_without_autocast,
        planted.product,
        WRONG,
        ["autocast: bfloat16", "autocast: float16", "autocast: bfloat16, backward outside"],
    ),
    (planted.other_every_second_time, planted.cell, WRONG, ["memory tools: checkpoint"]),
    (planted.other_without_gradients, planted.cell, WRONG, ["memory tools: checkpoint, use_reentrant=True"]),
    (
        planted.keeps_every_result,
        planted.cell,
        WRONG,
        ["memory tools: no leak, training", "memory tools: no leak, inference"],
    ),
    (planted.KeepsEveryGradient, planted.cell, WRONG, ["memory tools: no leak, training"]),
    (planted.keeps_memory, planted.cell, WRONG, ["memory tools: no leak, inference"]),
    (planted.forgets_the_type, planted.cell, WRONG, ["subclasses and modes: logging subclass"]),
    (planted.unheard_functions, planted.cell, WRONG, ["subclasses and modes: function mode"]),
    (planted.unheard_operations, planted.cell, WRONG, ["subclasses and modes: dispatch mode"]),
    (planted.UnheardBackward, planted.cell, WRONG, ["subclasses and modes: dispatch mode, backward"]),
    (planted.by_numpy, planted.cell, RAISES, ["subclasses and modes: wrapper subclass", "vmap: in_dims=0"]),
    (planted.Scratch(), planted.cell, WRONG, ["copies: deepcopy of a module", "copies: pickle of a module"]),
    (planted.records_always, planted.cell, WRONG, ["copies: no_grad"]),
    (planted.leaves_inference_mode, planted.cell, WRONG, ["copies: inference_mode"]),
    (planted.shared_buffer, planted.cell, WRONG, ["many at once: calls from many threads"]),
    (planted.SharedBuffer, planted.cell, WRONG, ["many at once: backward in many threads"]),
    (planted.other_in_workers, planted.cell, WRONG, ["many at once: DataLoader workers, fork"]),
]


CAUGHT = {row for *_, rows in FAULTS for row in rows}
SEEN_BY_VALUE = sorted(JUDGES.keys() - CAUGHT - {row for row, (_, judge) in JUDGES.items() if judge.slow})
NIGHTLY = sorted(row for row, (_, judge) in JUDGES.items() if judge.slow)
OF_OTHER_SUBJECTS = {"vmap: integers too", "torch.export: export, decomposed to the reference"}
COMPILED_OR_EXPORTED = {
    row for row in JUDGES if row.startswith(("torch.compile", "torch.export")) or row.endswith("compiled")
} - set(NIGHTLY)
ONNX_IS_HERE = all(map(find_spec, ("onnx", "onnxscript", "onnxruntime")))
SECONDS_EACH = {
    "torch.compile: compiled autograd",
    "torch.export: export, decomposed",
    "torch.export: export, sizes not fixed",
}


def nightly_if(condition, row):
    return pytest.param(row, marks=pytest.mark.nightly) if condition else row


def judged(row, subject, reference, samples=SAMPLES, **options):
    family, judge = JUDGES[row]
    chosen = Options(**{"quick": True, "steps": 100, **options})
    cases = cases_of(subject_of(subject, reference, samples, ""), chosen)
    return judge.row(family, *cases)


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    planted.LEFT.clear()


@pytest.mark.parametrize(
    ("subject", "reference", "state", "row"),
    [(subject, reference, state, row) for subject, reference, state, rows in FAULTS for row in rows],
    ids=lambda case: getattr(case, "__name__", case if isinstance(case, str) else type(case).__name__),
)
def test_a_planted_fault_turns_the_row_red(subject, reference, state, row):
    found = judged(row, subject, reference)
    assert found.state == state, str(found)


@pytest.mark.parametrize(
    "row", [nightly_if(row in SECONDS_EACH, row) for row in SEEN_BY_VALUE if row not in OF_OTHER_SUBJECTS]
)
def test_a_value_that_is_off_turns_every_other_row_red(row):
    found = judged(row, planted.off, planted.cell)
    assert found.state == WRONG, str(found)
    assert "got" in found.detail


@pytest.mark.nightly
@pytest.mark.parametrize("row", NIGHTLY)
def test_a_value_that_is_off_turns_the_slow_rows_red(row):
    found = judged(row, planted.off, planted.cell, quick=False)
    assert found.state == (WRONG if ONNX_IS_HERE or row != "torch.export: ONNX" else "skipped"), str(found)


@pytest.mark.parametrize("row", sorted(JUDGES.keys() - COMPILED_OR_EXPORTED - set(NIGHTLY)))
def test_a_right_function_in_other_operations_is_right_everywhere(row):
    found = judged(row, planted.rewritten, planted.cell)
    assert found.state == ("skipped" if row in OF_OTHER_SUBJECTS else "pass"), str(found)


@pytest.mark.nightly
@pytest.mark.parametrize("row", sorted(COMPILED_OR_EXPORTED | set(NIGHTLY)))
def test_it_is_when_compiled_too(row):
    found = judged(row, planted.rewritten, planted.cell, quick=False)
    without = OF_OTHER_SUBJECTS if ONNX_IS_HERE else OF_OTHER_SUBJECTS | {"torch.export: ONNX"}
    assert found.state == ("skipped" if row in without else "pass"), str(found)


def test_batches_of_integers():
    found = judged("vmap: integers too", planted.gathered_wrongly, planted.gathered, planted.gathers)
    assert found.state == WRONG, str(found)
    assert judged("vmap: integers too", planted.gathered, planted.gathered, planted.gathers).state == "pass"


@pytest.mark.parametrize(("reference", "state"), [(planted.multiply, "pass"), (planted.plain_by_name, WRONG)])
def test_an_exported_operator_is_decomposed_to_its_reference(reference, state):
    found = judged("torch.export: export, decomposed to the reference", planted.contiguous, reference)
    assert found.state == state, str(found)


@pytest.mark.parametrize(
    ("row", "subject", "reference", "detail"),
    [
        ("autograd: backward", planted.compared, planted.compared, "no result of the reference has a gradient"),
        ("autograd: each output alone", planted.product, planted.product, "there is one differentiable output only"),
        ("torch.export: AOTInductor package", planted.cell, planted.cell, "left out of a quick audit"),
        ("copies: pickle of a module", lambda x, y: planted.cell(x, y), planted.cell, "exists in memory only"),
    ],
)
def test_what_says_nothing_is_skipped_with_the_reason(row, subject, reference, detail):
    found = judged(row, subject, reference)
    assert (found.state, detail in found.detail) == ("skipped", True), str(found)


def test_less_than_float64_has_no_numerical_derivatives():
    found = judged("numerical derivatives: gradcheck", planted.cell, planted.cell, dtype=torch.float32)
    assert (found.state, found.detail[:16]) == ("skipped", "below float64, a")


@pytest.mark.parametrize("row", ["torch.compile: forward", "vmap: in_dims=0", "fake and meta: fake tensors"])
def test_where_the_reference_raises_torch_itself_raises(row):
    found = judged(row, planted.breaks_the_graph, planted.breaks_the_graph)
    assert found.state == "torch itself raises", str(found)
    assert found.detail


def test_threads_that_draw_random_numbers_say_nothing():
    found = judged("many at once: training in many threads", planted.drawn, planted.drawn)
    assert (found.state, "it draws random numbers" in found.detail) == ("skipped", True), str(found)


@pytest.mark.parametrize("row", ["autograd: cotangents of odd layouts", "memory tools: save_on_cpu"])
def test_where_only_the_subject_has_no_gradients_it_is_red(row):
    assert judged(row, planted.by_numpy, planted.cell).state in (RAISES, WRONG)


def test_a_reference_of_one_dtype_is_no_excuse():
    found = judged("autograd: backward", planted.off, planted.single, dtype=torch.float32)
    assert found.state == WRONG, str(found)


def test_two_right_answers_may_be_as_far_apart_as_rounding_moves_them():
    def factory(device, dtype):
        generator = torch.Generator().manual_seed(0)
        x, w = torch.randn(8, 3000, generator=generator) * 30, torch.randn(3000, 9, generator=generator)
        return [opwright.Sample((x.to(device, dtype), w.to(device, dtype)))]

    row = "hooks: retain_grad"
    assert judged(row, planted.in_another_order, planted.steep, factory).state == "pass"
    assert judged(row, planted.steep_and_off, planted.steep, factory).state == WRONG


def test_every_row_is_shown_to_fail():
    shown = {*CAUGHT, *SEEN_BY_VALUE, *NIGHTLY}
    assert shown == JUDGES.keys()
