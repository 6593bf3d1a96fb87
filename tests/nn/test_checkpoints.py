"""Modules in a checkpoint: its second forward pass, which is ended early, changes buffers again, as in eager."""

import copy

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import opwright


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


@pytest.mark.parametrize("use_reentrant", [False, True], ids=["by hooks", "reentrant"])
@pytest.mark.parametrize("made", [Normalized, NormalizedLast])
def test_statistics_change_as_often_as_in_eager(made, use_reentrant):
    written = made()
    module = opwright.module(copy.deepcopy(written))
    for _ in range(3):
        x = torch.randn(8, 4, requires_grad=True)
        for each in (written, module):
            each.zero_grad()
            checkpoint(each, x, use_reentrant=use_reentrant).sum().backward()
        assert module.norm.num_batches_tracked == written.norm.num_batches_tracked
        torch.testing.assert_close(dict(module.named_buffers()), dict(written.named_buffers()))
        torch.testing.assert_close(module.before.weight.grad, written.before.weight.grad)
    assert module.last_rung == "cpp"


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
