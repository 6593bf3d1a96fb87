"""Modules in a checkpoint: its second forward pass, which is ended early, changes buffers again, as in eager."""

import copy

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import opwright
from tests.suite.nights import mostly_at_night


class Normalized(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.norm, self.after = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 4)

    def forward(self, x):
        return self.after(torch.tanh(self.norm(self.before(x))))


class NormalizedLast(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(self.before(x))


@pytest.mark.parametrize("tape", ["now", "off"])
@pytest.mark.parametrize("use_reentrant", [False, True], ids=["by hooks", "reentrant"])
@pytest.mark.parametrize("made", mostly_at_night([Normalized, NormalizedLast], by_day=1))
def test_statistics_change_as_often_as_in_eager(made, use_reentrant, tape, monkeypatch):
    monkeypatch.setenv("OPWRIGHT_TAPE", tape)
    written = made()
    module = opwright.module(copy.deepcopy(written))
    for _ in range(3):
        x = torch.randn(8, 4, requires_grad=True)
        for each in (written, module):
            each.zero_grad()
            checkpoint(each, x, use_reentrant=use_reentrant).cos().sum().backward()
        assert module.norm.num_batches_tracked == written.norm.num_batches_tracked
        torch.testing.assert_close(dict(module.named_buffers()), dict(written.named_buffers()))
        torch.testing.assert_close(module.before.weight.grad, written.before.weight.grad)
    assert module.last_rung == "cpp"


@pytest.mark.parametrize("tape", ["now", "off"])
def test_arguments_change_as_often_as_in_eager(tape, monkeypatch):
    def counted(x: torch.Tensor, n: torch.Tensor):
        n.add_(x.detach().sum())
        return (x * x).sin().tanh()

    monkeypatch.setenv("OPWRIGHT_TAPE", tape)
    operator, x = opwright.operator(counted, mutates=("n",), name="tests::counted"), torch.randn(3, requires_grad=True)
    totals = torch.zeros(()), torch.zeros(())
    for _ in range(3):
        for function, n in zip((counted, operator), totals, strict=True):
            checkpoint(lambda x, call=function, n=n: call(x, n), x, use_reentrant=False).sum().backward()
        torch.testing.assert_close(*totals)
    assert operator.last_rung == "cpp"


class Stopped(Exception):
    pass


def test_buffers_stay_where_a_hook_of_the_user_raises():
    module = opwright.module(Normalized())
    for _ in range(3):
        module(torch.randn(8, 4))
    before = module.norm.running_mean.clone()

    def pack(tensor):
        raise Stopped

    with pytest.raises(Stopped), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        module(torch.randn(8, 4))
    torch.testing.assert_close(module.norm.running_mean, before)


class CheckpointInside(nn.Module):
    def __init__(self, made, **how):
        super().__init__()
        self.inside, self.last, self.how = made(), nn.Linear(4, 4), how

    def forward(self, x):
        return self.last(checkpoint(self.inside, x, **self.how))


@pytest.mark.falls_back
@pytest.mark.parametrize("preserve", [False, True])
@pytest.mark.parametrize("use_reentrant", [False, True], ids=["by hooks", "reentrant"])
@pytest.mark.parametrize("made", [Normalized, NormalizedLast])
def test_statistics_in_a_checkpoint_inside_change_when_they_do_in_eager(made, use_reentrant, preserve):
    written = CheckpointInside(made, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    module = opwright.module(copy.deepcopy(written))
    for with_backward in (True, False, True):
        x = torch.randn(8, 4, requires_grad=True)
        results = written(x), module(x)
        torch.testing.assert_close(*results)
        torch.testing.assert_close(dict(module.named_buffers()), dict(written.named_buffers()))
        if with_backward:
            for each, result in zip((written, module), results, strict=True):
                each.zero_grad()
                result.sum().backward()
            torch.testing.assert_close(dict(module.named_buffers()), dict(written.named_buffers()))
            torch.testing.assert_close(module.inside.before.weight.grad, written.inside.before.weight.grad)


@pytest.mark.falls_back
def test_an_argument_that_is_changed_in_a_checkpoint_inside_changes_when_it_does_in_eager():
    def counted_(x: torch.Tensor, count: torch.Tensor):
        def inside(x):
            count.add_(1)
            return torch.tanh(x) * x

        return checkpoint(inside, x, use_reentrant=False).sin()

    operator = opwright.operator(counted_, mutates=("count",))
    for function in (counted_, operator):
        x, count = torch.ones(4, requires_grad=True), torch.zeros(())
        result = function(x, count)
        assert count == 1
        result.sum().backward()
        assert count == 2
