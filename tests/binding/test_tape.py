"""A tape runs what it can, and says NotImplemented where somebody listens in or no kernel is at hand."""

import gc
import weakref

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode

import opwright


@opwright.operator
def scaled_product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x * y)


@opwright.operator
def noisy_on_tape(x: torch.Tensor) -> torch.Tensor:
    return x + torch.rand_like(x)


def tensors(*, requires_grad=True):
    return [torch.randn(3, 4, requires_grad=requires_grad) for _ in range(2)]


@pytest.fixture
def tape():
    for requires_grad in (True, False):
        scaled_product(*tensors(requires_grad=requires_grad))
    return scaled_product._variants.now().play


def test_the_node_is_called_after_the_operator(tape):
    assert tape(*tensors()).grad_fn.name() == "ScaledProductBackward"


def test_nothing_is_recorded_where_nobody_asks_for_gradients(tape):
    assert tape(*tensors(requires_grad=False)).grad_fn is None
    with torch.no_grad():
        assert tape(*tensors()).grad_fn is None


class Function(TorchFunctionMode):
    pass


@pytest.mark.parametrize(
    "listening",
    [FakeTensorMode, Function, lambda: torch.autocast("cpu", torch.bfloat16)],
    ids=["dispatch mode", "function mode", "autocast"],
)
def test_it_does_not_play_where_somebody_listens_in(tape, listening):
    given = tensors()
    with listening():
        assert tape(*given) is NotImplemented
    assert tape(*given) is not NotImplemented


def test_it_does_not_play_under_another_default_dtype(tape):
    given = tensors()
    torch.set_default_dtype(torch.float64)
    try:
        assert tape(*given) is NotImplemented
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "transform",
    [torch.vmap, lambda f: torch.func.grad(lambda x: f(x).sum()), lambda f: lambda x: torch.jit.trace(f, x)],
    ids=["vmap", "grad", "jit.trace"],
)
def test_it_does_not_play_under_a_transform(tape, transform):
    heard = []
    given = tensors()

    def listen(x):
        heard.append(tape(*given))
        return x * 2

    transform(listen)(torch.ones(3))
    assert heard[0] is NotImplemented


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_it_does_not_play_for_a_dual_tensor(tape):
    x, y = tensors()
    with forward_ad.dual_level():
        assert tape(forward_ad.make_dual(x, torch.ones_like(x)), y) is NotImplemented


@pytest.mark.parametrize(
    "given",
    [
        (torch.ones(3, 4),),
        (torch.ones(3, 4), 2.0),
        (torch.ones(3, 4), None),
        (torch.ones(3, 4), torch.ones(3, 4).as_subclass(type("Own", (torch.Tensor,), {}))),
        (torch.ones(3, 4), torch.ones(3, 4, dtype=torch.int8)),
        (torch.ones(3, 4), torch.ones(2, 2, 2, 2)),
    ],
    ids=["too few", "a number", "none", "a subclass", "another dtype", "another rank"],
)
def test_it_does_not_play_what_it_has_no_kernel_for(tape, given):
    assert tape(*given) is NotImplemented


def test_it_plays_what_the_conjugate_and_negative_bits_stand_for(tape):
    x, y = tensors(requires_grad=False)
    negated = torch.complex(torch.zeros_like(y), -y).conj().imag
    assert negated.is_neg()
    torch.testing.assert_close(tape(x, negated), torch.tanh(x * y))


def test_random_operators_draw_what_eager_draws():
    noisy_on_tape(torch.ones(3, requires_grad=True)).sum().backward()
    torch.manual_seed(0)
    found = noisy_on_tape._variants.now().play(torch.ones(3, requires_grad=True))
    torch.manual_seed(0)
    assert torch.equal(found, noisy_on_tape.reference(torch.ones(3)))


def test_what_was_recorded_dies_with_its_result(tape):
    given = tensors()
    middle = [tensor * 2 for tensor in given]
    result = tape(*middle)
    gone = [weakref.ref(value) for value in (*middle, result)]
    gc.disable()
    try:
        del middle, result
        assert [ref() for ref in gone] == [None] * 3
    finally:
        gc.enable()


def test_a_tape_lives_as_long_as_its_operator_or_a_node(tape):
    variants = scaled_product._variants.now()
    first, given = weakref.ref(variants.tape), tensors()
    result = tape(*given)
    variants.equip(variants._native)  # winds a new one
    assert variants.tape is not first()
    (gradient,) = torch.autograd.grad(result.sum(), given[0], create_graph=True)
    assert gradient.requires_grad
    del result, gradient
    gc.collect()
    assert first() is None


def test_a_hook_of_saved_tensors_sees_what_is_kept(tape):
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t.clone(), lambda t: t):
        result = tape(*tensors())
    assert packed
    result.sum().backward()


def test_the_differentiable_backward_computes_what_is_asked_for(tape):
    x, y = tensors()
    first, second = torch.autograd.grad(tape(x, y).sum(), (x, y), create_graph=True)
    (alone,) = torch.autograd.grad(tape(x, y).sum(), y, create_graph=True)
    assert torch.equal(alone, second)
    expected = torch.autograd.grad(torch.tanh(x * y).sum(), y, create_graph=True)[0]
    for outer in (x, y):
        torch.testing.assert_close(
            torch.autograd.grad(alone.sum(), outer, retain_graph=True),
            torch.autograd.grad(expected.sum(), outer, retain_graph=True),
        )
    names = {backward.name.split("::")[1] for backward in scaled_product._family.backwards}
    assert names >= {"scaled_product_backward_x_y", "scaled_product_backward_y"}
    assert first is not None


def test_a_wrong_gradient_of_the_differentiable_backward_raises(tape, monkeypatch):
    """An error in Python comes out of the engine as it is."""

    def fail(*_):
        raise ArithmeticError("from below")

    monkeypatch.setattr("opwright.binding.transforms.safe.SafeTransforms.backward_of", fail)
    result = tape(*tensors())
    with pytest.raises(ArithmeticError, match="from below"):
        result.sum().backward(create_graph=True)
