import json
from functools import partial

import pytest
import torch

from opwright.benchmark import bench, call_cost
from opwright.benchmark.stopwatch import Plan
from opwright.errors import NoKernel, ReferenceMissing, SamplesMissing
from opwright.samples import Sample, shapes
from tests.fake_operator import FakeOperator, scale
from tests.suite.nights import mostly_at_night

QUICK = Plan(slice_ns=20_000, fewest_rounds=3, most_rounds=3)
SAMPLES = shapes("B S", "B S", B=(4, 8), S=16)


def measure(subject, reference=None, samples=None, compile=False, **options):
    return bench(subject, reference, samples, plan=QUICK, compile=compile, **options)


def written(x, y):
    return x.mul(y.sigmoid())


def wrong(x, y):
    return scale(x, y) * 1.001


class WrongGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return scale(x, y)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y.sigmoid(), g * x


def remembering():
    """Return what was computed for these addresses before."""
    seen = {}

    def remembered(x, y):
        if torch.is_grad_enabled():
            return scale(x, y)
        key = (x.data_ptr(), y.data_ptr())
        if key not in seen:
            seen[key] = scale(x, y)
        return seen[key]

    return remembered


def broken(x, y):
    raise NoKernel("float32 has no kernel")


def test_every_rung_is_timed_and_verified_on_every_sample():
    report = measure(FakeOperator(scale, SAMPLES, {"function": WrongGradient.apply, "cpp": written, "cuda": "no GPU"}))
    found = {(entry.sample, entry.contender): entry.outcome for entry in report.entries}
    assert found == {
        (sample, contender): outcome
        for sample in ("B=4 S=16", "B=8 S=16")
        for contender, outcome in (("composed", "measured"), ("function", "wrong"), ("cpp", "measured"))
    }
    assert report.missing == {"cuda": "no GPU"}
    cpp = next(entry for entry in report.entries if entry.contender == "cpp")
    assert cpp.forward.median_us > 0
    assert cpp.training.median_us > cpp.forward.median_us
    assert cpp.error < 1e-6
    assert cpp.gradient_error < 1e-6


@pytest.mark.parametrize(
    ("faulty", "message"),
    [
        (wrong, "its timing is void: output 0 is wrong: error 0.001"),
        (WrongGradient.apply, "its timing is void: gradient 1 is wrong"),
        (lambda x, y: scale(x, y).double(), "output 0 has dtype float64"),
        (lambda x, y: scale(x, y).detach(), "0 of the used outputs require a gradient"),
        (remembering(), "its timing is void: output 0 is wrong"),
    ],
)
def test_a_wrong_result_voids_its_timing_loudly(faulty, message):
    report = measure(faulty, scale, SAMPLES)
    entry = next(entry for entry in report.entries if entry.contender == "callable")
    assert message in entry.reason
    assert entry.forward is None
    assert entry.training is None
    assert not report.passed
    assert "WRONG" in str(report)


@pytest.mark.parametrize(
    ("rungs", "served", "message"),
    [
        ({"cpp": broken}, None, "NoKernel: float32 has no kernel"),
        ({"cpp": written}, {"cpp": "composed"}, "the call is served by composed (hint: explain() says why)"),
    ],
)
def test_a_rung_that_does_not_run_is_absent_with_the_reason(rungs, served, message):
    report = measure(FakeOperator(scale, SAMPLES, rungs, served))
    entry = next(entry for entry in report.entries if entry.contender == "cpp")
    assert (entry.outcome, entry.reason, entry.forward) == ("absent", message, None)
    assert report.passed


def test_without_gradients_only_forward_is_timed():
    def samples(device, dtype):
        return [Sample((torch.arange(4), torch.arange(4)), name="integers")]

    report = measure(torch.add, torch.add, samples)
    assert {entry.training for entry in report.entries} == {None}
    assert {entry.reason for entry in report.entries} == {"no output of the reference is differentiable"}
    assert all(entry.forward for entry in report.entries)


def test_outputs_of_any_structure_are_differentiated():
    def mixed(x, y):
        return {"product": x * y, "argmax": x.argmax()}

    report = measure(lambda x, y: mixed(x, y), mixed, SAMPLES)
    assert all(entry.training for entry in report.entries)


def test_speedups_are_ratios_of_medians_on_the_same_sample():
    report = measure(written, scale, SAMPLES)
    reference, own = (
        next(entry for entry in report.entries if entry.contender == name and entry.sample == "B=8 S=16")
        for name in ("composed", "callable")
    )
    expected = reference.training.median_us / own.training.median_us
    assert report.speedup(own, "training", "composed") == expected
    assert report.speedup(reference, "training", "composed") == 1.0
    assert report.speedup(own, "training", "torch.compile") is None
    written_entry = report.to_json()["entries"][report.entries.index(own)]
    assert written_entry["speedup"]["training"] == {"composed": expected, "torch.compile": None}


def test_json_is_strict_and_names_the_machine():
    report = json.loads(json.dumps(measure(written, scale, SAMPLES).to_json(), allow_nan=False))
    assert report["machine"]["torch"] == torch.__version__
    assert report["machine"]["torch_threads"] == torch.get_num_threads()
    assert report["machine"]["cores"] >= 1
    assert report["machine"]["cpu"]
    assert report["passed"] is True


def test_a_reference_that_does_not_compile_is_absent_as_a_peer(monkeypatch):
    def refuse(*args, **kwargs):
        def compiled(x, y):
            raise RuntimeError("no backend\nand a long story")

        return compiled

    monkeypatch.setattr(torch, "compile", refuse)
    report = measure(written, scale, SAMPLES, compile=True)
    entry = next(entry for entry in report.entries if entry.contender == "torch.compile")
    assert (entry.outcome, entry.reason) == ("absent", "RuntimeError: no backend")


@pytest.mark.parametrize("backend", mostly_at_night(["eager", "inductor"], by_day=1))
def test_torch_compile_is_a_peer_whose_result_is_verified_too(backend, monkeypatch):
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    report = measure(written, scale, shapes("B S", "B S", B=4, S=16), compile=True)
    entry = next(entry for entry in report.entries if entry.contender == "torch.compile")
    assert entry.outcome == "measured", entry.reason
    assert entry.forward.median_us > 0


@pytest.mark.parametrize(
    ("reference", "samples", "refusal"),
    [(None, SAMPLES, ReferenceMissing), (scale, None, SamplesMissing), (scale, lambda *_: [], SamplesMissing)],
)
def test_what_cannot_be_measured_is_refused(reference, samples, refusal):
    with pytest.raises(refusal):
        measure(scale, reference, samples)


def test_progress_names_the_sample_and_what_is_under_way():
    steps = []
    measure(written, scale, SAMPLES, progress=lambda *step: steps.append(step))
    assert ("B=4 S=16: warm up callable", 0, 2) in steps
    assert ("B=8 S=16: time forward and backward", 1, 2) in steps


def test_call_cost_sets_a_function_beside_a_peer():
    def twice(x):
        return torch.neg(torch.neg(x))

    cost = call_cost(twice, torch.neg, (torch.ones(1),), plan=QUICK)
    assert cost.extra_us == cost.subject.median_us - cost.peer.median_us > 0
    assert cost.to_json()["extra_us"] == cost.extra_us
