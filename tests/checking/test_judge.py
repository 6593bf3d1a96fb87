"""Plant one fault at a time into a right operator: the check named for it has to catch it."""

import pytest
import torch
from torch.autograd.function import once_differentiable

from opwright import operator
from opwright.checking import check
from opwright.checking.judge import CHECKS
from opwright.errors import CheckUnknown, ReferenceMissing, SamplesMissing
from opwright.samples import Sample, shapes

SAMPLES = shapes("B S", "B S", B=(4, 16), S=(40, 33))


def gate(x, y):
    product = x * torch.sigmoid(y)
    return product, product.sum(-1)


class Gate(torch.autograd.Function):
    """The right operator, by hand; each planted fault changes one of its methods."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return gate(x, y)

    @staticmethod
    def backward(ctx, g, g_sum):
        x, y = ctx.saved_tensors
        g, s = g + g_sum.unsqueeze(-1), torch.sigmoid(y)
        return g * s, g * x * s * (1 - s)


def as_if_contiguous(tensor):
    """Read a tensor's storage from its first element on, blind to strides."""
    storage = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
    places = (torch.arange(tensor.numel()) + tensor.storage_offset()) % len(storage)
    return storage[places].view(tensor.shape)


class WrongGradient(Gate):
    @staticmethod
    def backward(ctx, g, g_sum):
        x, y = ctx.saved_tensors
        g, s = g + g_sum.unsqueeze(-1), torch.sigmoid(y)
        return g * s, g * x * s


class ZeroGradient(Gate):
    @staticmethod
    def backward(ctx, g, g_sum):
        return torch.zeros_like(g), torch.zeros_like(g)


class NoSecondDerivative(Gate):
    backward = staticmethod(once_differentiable(Gate.backward))


class DetachedSecondDerivative(Gate):
    @staticmethod
    def backward(ctx, g, g_sum):
        return tuple(gradient.detach() for gradient in Gate.backward(ctx, g, g_sum))


class SavedIntermediate(Gate):
    """The first derivative is right; the second misses the path through what was saved."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.s = torch.sigmoid(y)
        return Gate.forward(ctx, x, y)

    @staticmethod
    def backward(ctx, g, g_sum):
        x, _ = ctx.saved_tensors
        g, s = g + g_sum.unsqueeze(-1), ctx.s
        return g * s, g * x * s * (1 - s)


class BlindToInputLayout(Gate):
    @staticmethod
    def forward(ctx, x, y):
        return Gate.forward(ctx, as_if_contiguous(x), y)


class BlindToGradientLayout(Gate):
    @staticmethod
    def backward(ctx, g, g_sum):
        return Gate.backward(ctx, as_if_contiguous(g), g_sum)


class BlindToStrideZero(Gate):
    @staticmethod
    def backward(ctx, g, g_sum):
        return Gate.backward(ctx, torch.zeros_like(g) if 0 in g.stride() and g.dim() else g, g_sum)


class SwappedWhenPartial(Gate):
    """Returns the gradients by count instead of by position."""

    @staticmethod
    def backward(ctx, g, g_sum):
        first, second = Gate.backward(ctx, g, g_sum)
        return (None, first) if not ctx.needs_input_grad[0] else (first, second)


class SpoiltByBackward(Gate):
    """Backward overwrites what it will need again."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.x = x.detach().clone()
        return Gate.forward(ctx, x, y)

    @staticmethod
    def backward(ctx, g, g_sum):
        _, y = ctx.saved_tensors
        g, s, x = g + g_sum.unsqueeze(-1), torch.sigmoid(y), ctx.x.clone()
        ctx.x.zero_()
        return g * s, g * x * s * (1 - s)


class NoneForUnused(Gate):
    """Drops all gradients when one output is unused."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        return Gate.forward(ctx, x, y)

    @staticmethod
    def backward(ctx, g, g_sum):
        return (None, None) if g is None or g_sum is None else Gate.backward(ctx, g, g_sum)


class SilentZeroTangents(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, y):
        return gate(x, y)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    backward = Gate.backward

    @staticmethod
    def jvp(ctx, x, y):
        return torch.zeros_like(x), x.new_zeros(x.shape[:-1])


def off_by_one_at_size_one(x, y):
    product, total = gate(x, y)
    return product, total if x.shape[-1] != 1 else torch.zeros_like(total)


def wrong_shape_when_empty(x, y):
    product, total = gate(x, y)
    return product, total if x.numel() else total.unsqueeze(0)


def one_wrong_element(x, y):
    product, total = gate(x, y)
    if product.dim() and product.shape[-1] > 30:
        product = product + torch.nn.functional.one_hot(torch.tensor(30), product.shape[-1]) * 1e-4
    return product, total


def rough(x, y):
    product, total = gate(x, torch.round(y * 1e4) / 1e4 if y.dtype == torch.float32 else y)
    return product, total


def wrong_dtype(x, y):
    product, total = gate(x, y)
    return product, total.double()


def one_output(x, y):
    return gate(x, y)[0]


def nan_is_zero(x, y):
    return gate(torch.where(x.isnan(), 0.0, x), y)


def infinity_is_large(x, y):
    return gate(x.clamp(max=torch.finfo(x.dtype).max), y)


def other_message(x, y):
    if x.shape != y.shape:
        raise RuntimeError("shapes differ")
    return gate(x, y)


def other_exception(x, y):
    if x.shape[-1:] != y.shape[-1:]:
        raise ValueError("shapes differ")
    return gate(x, y)


def accepts_anything(x, y):
    length = min(x.shape[-1], y.shape[-1])
    return gate(x[..., :length], y[..., :length])


def overwrites_input(x, y):
    result = gate(x, y)
    with torch.no_grad():
        y.add_(1)
    return result


def confused_by_one_tensor(x, y):
    return gate(x, y + 1 if x is y else y)


def raises(x, y):
    raise KeyError("kernel")


FAULTS = [
    (WrongGradient.apply, {"gradients", "gradcheck"}),
    (ZeroGradient.apply, {"gradients", "gradcheck", "some gradients", "unused output"}),
    (NoSecondDerivative.apply, {"gradgradcheck"}),
    (DetachedSecondDerivative.apply, {"gradgradcheck"}),
    (SavedIntermediate.apply, {"gradgradcheck"}),
    (BlindToInputLayout.apply, {"layouts"}),
    (BlindToGradientLayout.apply, {"layouts"}),
    (BlindToStrideZero.apply, {"layouts"}),
    (SwappedWhenPartial.apply, {"some gradients"}),
    (SpoiltByBackward.apply, {"two backward passes"}),
    (NoneForUnused.apply, {"unused output"}),
    (SilentZeroTangents.apply, {"forward mode"}),
    (off_by_one_at_size_one, {"edge sizes"}),
    (wrong_shape_when_empty, {"edge sizes"}),
    (one_wrong_element, {"values"}),
    (rough, {"values"}),
    (wrong_dtype, {"values"}),
    (one_output, {"values"}),
    (nan_is_zero, {"special values"}),
    (infinity_is_large, {"special values"}),
    (other_message, {"errors"}),
    (other_exception, {"errors"}),
    (accepts_anything, {"errors"}),
    (overwrites_input, {"values"}),
    (confused_by_one_tensor, {"same tensor twice"}),
    (raises, {"values", "gradients"}),
]


def failed_checks(verdict):
    return {row.check for row in verdict.rows if row.status == "failed"}


@pytest.mark.parametrize("right", [gate, Gate.apply, lambda x, y: gate(x, y)])
def test_a_right_operator_passes_every_check(right):
    verdict = check(right, gate, SAMPLES)
    assert failed_checks(verdict) == set()
    assert verdict.passed
    untold = {row.check for row in verdict.rows if row.status == "skipped"}
    assert untold <= {"opcheck", "forward mode"}, str(verdict)


QUICK = {"values", "gradients", "layouts", "special values", "errors", "two backward passes", "unused output"}


def test_a_quick_check_says_what_it_left_out():
    verdict = check(gate, gate, shapes("B S", "B S", B=(4, 2), S=33), quick=True, dtypes=[torch.float32])
    assert (verdict.passed, verdict.quick) == (True, True)
    assert {row.check for row in verdict.rows} == QUICK
    assert {row.sample for row in verdict.rows if row.check == "values"} == {"B=2 S=33 float32"}
    assert set(verdict.left_out) == {each.name for each in CHECKS} - QUICK


@pytest.mark.parametrize(("faulty", "caught_by"), [(fault, checks) for fault, checks in FAULTS if checks <= QUICK])
def test_a_quick_check_catches_what_its_checks_are_for(faulty, caught_by):
    assert caught_by <= failed_checks(check(faulty, gate, SAMPLES, quick=True))


def test_only_the_checks_that_are_asked_for_run():
    verdict = check(one_wrong_element, gate, SAMPLES, only=("callable: err", "grad"))
    assert {row.check for row in verdict.rows} >= {"errors", "gradients", "gradcheck"}
    assert "values" in verdict.left_out
    assert "values" not in failed_checks(verdict)


def test_a_check_that_does_not_exist_is_refused():
    with pytest.raises(
        CheckUnknown, match=r"^no check is called valeus or x\nhint: the checks are values, gradients, "
    ):
        check(gate, gate, SAMPLES, only=("valeus", "x"))
    with pytest.raises(CheckUnknown, match=r"^no check is called valeus\n"):
        check(gate, gate, SAMPLES, only=("values", "valeus"))
    with pytest.raises(CheckUnknown, match=r"^the quick check leaves gradcheck out\n"):
        check(gate, gate, SAMPLES, only=("gradcheck",), quick=True)


@pytest.mark.parametrize(("faulty", "caught_by"), FAULTS, ids=lambda case: getattr(case, "__qualname__", None))
def test_a_planted_fault_is_caught_by_the_check_named_for_it(faulty, caught_by):
    verdict = check(faulty, gate, SAMPLES)
    assert not verdict.passed
    assert caught_by <= failed_checks(verdict), str(verdict)


def test_every_check_but_opcheck_has_a_planted_fault():
    assert {step.name for step in CHECKS} - {"opcheck"} == set().union(*(caught for _, caught in FAULTS))


def test_a_fault_is_said_with_the_place_and_both_errors():
    verdict = check(WrongGradient.apply, gate, SAMPLES)
    row = next(row for row in verdict.rows if row.check == "gradients" and row.status == "failed")
    assert row.sample == "B=4 S=40 float32"
    assert row.detail.startswith("gradient 1 is wrong: error ")
    assert row.error > 0.1
    assert 0 < row.eager_error < 1e-6


def test_where_the_reference_fails_too_nothing_is_held_against_the_candidate():
    def rounded(x):
        return torch.round(x) + x.floor() / 2

    verdict = check(rounded, rounded, lambda device, dtype: [Sample((torch.tensor([0.5, 1.0], dtype=dtype),))])
    statuses = {(row.check, row.status) for row in verdict.rows}
    assert ("gradcheck", "skipped") in statuses
    assert verdict.passed


def test_samples_without_small_ones_say_that_edges_are_not_checked():
    verdict = check(gate, gate, lambda device, dtype: list(SAMPLES(device, dtype)))
    (row,) = [row for row in verdict.rows if row.check == "edge sizes"]
    assert row.status == "skipped"
    assert "opwright.shapes" in row.detail


def test_complex_and_integer_inputs_are_compared_as_what_they_are():
    def rotate(z, n):
        return z * torch.exp(1j * n.to(z.real.dtype)), n + 1

    def samples(device, dtype):
        generator = torch.Generator().manual_seed(0)
        return [Sample((torch.randn(5, generator=generator, dtype=dtype), torch.arange(5)), name="rotate")]

    complex_dtypes = (torch.complex64, torch.complex128)
    assert check(rotate, rotate, samples, dtypes=complex_dtypes).passed
    verdict = check(lambda z, n: (rotate(z, n)[0].conj(), n + 1), rotate, samples, dtypes=complex_dtypes)
    assert {"values", "gradients"} <= failed_checks(verdict)
    verdict = check(lambda z, n: (rotate(z, n)[0], n + n // 4 + 1), rotate, samples, dtypes=complex_dtypes)
    assert "output 1 differs at [4] and 0 other places" in str(verdict)


@pytest.mark.parametrize(
    ("reference", "samples", "refusal"),
    [
        (None, SAMPLES, ReferenceMissing),
        (gate, None, SamplesMissing),
        (gate, lambda device, dtype: [], SamplesMissing),
    ],
)
def test_what_cannot_be_judged_is_refused(reference, samples, refusal):
    with pytest.raises(refusal):
        check(gate, reference, samples)


def test_progress_is_told_each_step():
    steps = []
    check(gate, gate, SAMPLES, progress=lambda *step: steps.append(step))
    assert steps[0] == ("callable: values", 0, len(CHECKS))
    assert [done for _, done, _ in steps] == list(range(len(CHECKS)))


def steep(x, w):
    """Rounding of the sums is as large as the sums, where the results are small."""
    return torch.sigmoid(x @ w) * torch.cos(x @ w)


def in_another_order(x, w):
    order = torch.randperm(x.shape[1], generator=torch.Generator().manual_seed(0))
    product = x.index_select(1, order) @ w.index_select(0, order)
    return torch.sigmoid(product) * torch.cos(product)


def off_in_float64(x, w):
    return in_another_order(x, w) + (1e-9 * torch.cos(x @ w) if x.dtype == torch.float64 else 0)


def far_apart(device, dtype):
    generator = torch.Generator().manual_seed(0)
    x, w = torch.randn(8, 3000, generator=generator) * 30, torch.randn(3000, 9, generator=generator)
    yield Sample((x.to(device, dtype), w.to(device, dtype)), {}, "steep")


def test_float64_is_judged_by_how_far_apart_two_right_answers_may_be():
    """There is nothing wider to compare with, and sums in another order are as right as eager's."""
    options = {"reference": steep, "samples": far_apart, "dtypes": [torch.float64]}
    assert not _faults(check(in_another_order, **options)) & {"values", "gradients"}
    assert "values" in _faults(check(off_in_float64, **options))


def _faults(verdict):
    return {row.check for row in verdict.rows if row.status == "failed"}


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # PyTorch scripts its own formulas
def test_tangents_that_pytorch_gives_another_dtype_may_be_of_the_outputs():
    def weighted(x):
        return x.sum() * 4.0

    x = torch.ones(3)
    assert torch.func.jvp(weighted, (x,), (x,))[1].dtype is torch.float64  # then only may a tangent be of either

    @operator(samples=shapes("B", B=3), name="judge::weighted_sum")
    def weighted_sum(x: torch.Tensor) -> torch.Tensor:
        return x.sum() * 4.0

    assert weighted_sum.check(only=["forward mode"]).passed
    assert check(weighted, weighted, shapes("B", B=3), only=["forward mode"]).passed
    right = check(weighted, lambda x: x.mul(4.0).sum(), shapes("B", B=3), only=["forward mode"])
    assert failed_checks(right) == {"forward mode"}
