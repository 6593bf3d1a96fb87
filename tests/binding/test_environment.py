"""Every way of listening in on torch is seen, and a quiet thread is quiet again afterwards."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from opwright.binding.environment import are_plain, is_asked_for, is_quiet, is_recorded, recording


class Function(TorchFunctionMode):
    pass


@pytest.mark.parametrize(
    "listening",
    [FakeTensorMode, Function, forward_ad.dual_level, lambda: torch.autocast("cpu", torch.bfloat16)],
    ids=["dispatch mode", "function mode", "forward mode", "autocast"],
)
def test_a_mode_is_heard_for_as_long_as_it_lasts(listening):
    assert is_quiet()
    with listening():
        assert not is_quiet()
    assert is_quiet()


class Dispatch(TorchDispatchMode):
    pass


def test_who_records_is_told_from_who_only_leaves_out_the_data():
    assert not is_recorded()
    with FakeTensorMode():
        assert not is_recorded()
        with Dispatch():
            assert is_recorded()


@pytest.mark.parametrize(
    ("default", "is_served"),
    [(torch.float32, True), (torch.float64, True), (torch.float16, False), (torch.bfloat16, False)],
)
def test_a_half_type_as_default_is_heard(default, is_served):
    """Kernels are derived under the others, which states compare."""
    torch.set_default_dtype(default)
    try:
        assert is_quiet() == is_served
    finally:
        torch.set_default_dtype(torch.float32)
    assert is_quiet()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "transform",
    [torch.vmap, lambda f: torch.func.grad(lambda x: f(x).sum()), lambda f: lambda x: torch.jit.trace(f, x)],
)
def test_a_transform_is_heard(transform):
    heard = []

    def listen(x):
        heard.append(is_quiet())
        return x * 2

    transform(listen)(torch.ones(3))
    assert heard[0] is False
    assert is_quiet()


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (torch.ones(2), True),
        (torch.nn.Parameter(torch.ones(2)), True),
        (torch.nn.Buffer(torch.ones(2)), True),
        (torch.ones(2).as_subclass(type("Own", (torch.Tensor,), {})), False),
        (2.0, False),
        (None, False),
    ],
)
def test_only_tensors_of_torch_itself_are_plain(value, plain):
    assert are_plain([torch.ones(1), value]) is plain


@pytest.mark.parametrize("state", [torch.no_grad, torch._C._AutoDispatchBelowAutograd])
def test_gradients_are_recorded_where_nothing_else_records_them(state):
    x = torch.ones(2, requires_grad=True)
    with state():
        assert not (x * 2).requires_grad
        with recording():
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad


@pytest.mark.parametrize("wanted", [(0,), (1,), (0, 1)])
def test_what_a_backward_pass_goes_on_to(wanted):
    """A leaf, and what is computed from one."""

    class Asking(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *given):
            return given[0] * given[1]

        @staticmethod
        def backward(ctx, gradient):
            heard.extend(is_asked_for(node) for node, _ in ctx.next_functions)
            return gradient, gradient

    heard = []
    given = (torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True).exp())
    torch.autograd.grad(Asking.apply(*given).sum(), [given[position] for position in wanted])
    assert heard == [position in wanted for position in (0, 1)]
