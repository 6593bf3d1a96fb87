"""Backward passes of some outputs, or of some gradients, run in C++ from the second one on."""

import pytest
import torch

import opwright
from opwright.binding import tape as tapes
from opwright.binding.variants.states import OutsideChanged


@pytest.fixture
def in_python(monkeypatch):
    """The passes that Python has run."""
    passes, called = [], tapes.Tape.__call__

    def counted(self, number, arguments, intermediates, cotangents, wanted):
        passes.append([cotangent is not None for cotangent in cotangents])
        return called(self, number, arguments, intermediates, cotangents, wanted)

    monkeypatch.setattr(tapes.Tape, "__call__", counted)
    return passes


def tensors(*, requires_grad=True):
    return [torch.randn(3, 4, dtype=torch.float64, requires_grad=requires_grad) for _ in range(3)]


def loss_and_more(x, y, w):
    z = torch.tanh(x * y) @ w.t()
    return z.square().mean(), z.exp(), (x * 2).sum()


loss_and_more_known = opwright.operator(loss_and_more)

PASSES = {
    "the first output": lambda a, b, c: a,
    "the second output": lambda a, b, c: b.sum(),
    "two of three": lambda a, b, c: a + (b * b).sum(),
    "one that not all arguments reach": lambda a, b, c: c,
}


@pytest.mark.parametrize("total", PASSES.values(), ids=PASSES)
def test_gradients_of_some_outputs_are_right_and_need_python_once(total, in_python):
    for step in range(5):
        given = tensors()
        found = torch.autograd.grad(total(*loss_and_more_known(*given)), given, allow_unused=True)
        expected = torch.autograd.grad(total(*loss_and_more(*given)), given, allow_unused=True)
        for one, other in zip(found, expected, strict=True):
            if other is None:
                assert one is None
            else:
                torch.testing.assert_close(one, other)
        if step == 1:
            in_python.clear()
    assert in_python == []


def spared(x, w):
    return torch.tanh(x) @ w


spared_known = opwright.operator(spared)


def test_gradients_of_some_arguments_need_python_once(in_python):
    for step in range(4):
        x, w = (torch.randn(size, dtype=torch.float64, requires_grad=True) for size in ((3, 4), (4, 5)))
        (found,) = torch.autograd.grad(spared_known(x, w).sum(), [w])
        torch.testing.assert_close(found, torch.autograd.grad(spared(x, w).sum(), [w])[0])
        if step == 1:
            in_python.clear()
    assert in_python == []


def taught():
    for _ in range(3):
        given = tensors()
        loss_and_more_known(*given)[0].backward()


def test_passes_that_are_differentiated_again_go_to_python(in_python):
    taught()
    in_python.clear()
    given = tensors()
    (first,) = torch.autograd.grad(loss_and_more_known(*given)[0], given[0], create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), given[0])
    (eager,) = torch.autograd.grad(loss_and_more(*given)[0], given[0], create_graph=True)
    torch.testing.assert_close(second, torch.autograd.grad(eager.sum(), given[0])[0])
    assert in_python


def test_other_layouts_and_dtypes_are_right_after_a_known_pass():
    taught()
    for change in (torch.Tensor.float, lambda t: t.detach().t().contiguous().t(), lambda t: t.detach()[:2]):
        given = [change(each).detach().requires_grad_() for each in tensors()]
        found = torch.autograd.grad(loss_and_more_known(*given)[0], given[:2])
        expected = torch.autograd.grad(loss_and_more(*given)[0], given[:2])
        torch.testing.assert_close(found, expected)


def test_a_graph_that_is_used_again_says_so():
    taught()
    loss = loss_and_more_known(*tensors())[0]
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_a_saved_tensor_that_changed_says_so():
    taught()
    given = tensors(requires_grad=False)
    given[0].requires_grad_()
    for _ in range(3):
        loss_and_more_known(*given)[0].backward()
    loss = loss_and_more_known(*given)[0]
    given[1].add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


FACTOR = {"of": 2.0}


def read_outside(x):
    return (x * x * FACTOR["of"]).sum(), x.exp()


read_outside_known = opwright.operator(read_outside)


def test_what_changes_outside_is_noticed(monkeypatch):
    for _ in range(3):
        x = torch.randn(3, requires_grad=True)
        read_outside_known(x)[0].backward()
        torch.testing.assert_close(x.grad, x.detach() * 4)
    x = torch.randn(3, requires_grad=True)
    before, differentiated = read_outside_known(x)[0], read_outside_known(x)[0]
    monkeypatch.setitem(FACTOR, "of", 5.0)
    before.backward()  # by the kernels of the call, which are from before
    torch.testing.assert_close(x.grad, x.detach() * 4)
    with pytest.raises(OutsideChanged):
        torch.autograd.grad(differentiated, x, create_graph=True)
    y = torch.randn(3, requires_grad=True)
    read_outside_known(y)[0].backward()
    torch.testing.assert_close(y.grad, y.detach() * 10)


class Scored(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inside = torch.nn.Linear(4, 4)

    def forward(self, x):
        logits = torch.tanh(self.inside(x))
        return {"loss": logits.square().mean(), "logits": logits}


def test_a_module_that_returns_its_loss_beside_its_logits(in_python):
    written, x = Scored(), torch.randn(2, 4)
    module = opwright.module(written)
    written(x)["loss"].backward()
    expected = [parameter.grad.clone() for parameter in written.parameters()]
    for step in range(5):
        module.zero_grad()
        module(x)["loss"].backward()
        torch.testing.assert_close([parameter.grad for parameter in module.parameters()], expected)
        if step == 2:
            in_python.clear()
    assert in_python == []
    assert module.last_rung == "cpp"
