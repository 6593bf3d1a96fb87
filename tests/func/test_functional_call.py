"""`functional_call` is one operator of the given tensors, or a call of the served module."""

import pytest
import torch
from torch import nn

from opwright import func
from opwright.func.functional import _served_once
from tests.func.functions import X

pytestmark = pytest.mark.built_together


def network(norm=False):
    torch.manual_seed(0)
    layers = [nn.Linear(4, 3), *([nn.BatchNorm1d(3)] if norm else []), nn.Tanh()]
    return nn.Sequential(*layers).double()


def changed(module):
    return {name: tensor.detach() + 1 for name, tensor in module.named_parameters()}


def test_a_module_with_all_its_tensors_given():
    module = network()
    given = changed(module)
    torch.testing.assert_close(func.functional_call(module, given, X), torch.func.functional_call(module, given, X))
    leaf = {**given, "0.bias": given["0.bias"].clone().requires_grad_()}
    found = torch.autograd.grad(func.functional_call(module, leaf, (X,)).sum(), leaf["0.bias"])
    expected = torch.autograd.grad(torch.func.functional_call(module, leaf, (X,)).sum(), leaf["0.bias"])
    torch.testing.assert_close(found, expected)


def test_a_module_with_some_of_its_tensors_given():
    module = network()
    given = {"0.bias": torch.ones(3, dtype=X.dtype)}
    before = module[0].bias
    torch.testing.assert_close(func.functional_call(module, given, X), torch.func.functional_call(module, given, X))
    assert module[0].bias is before
    assert _served_once(module) is _served_once(module)


def test_buffers_change_in_training():
    found, expected = (network(norm=True) for _ in range(2))
    given = changed(found)
    for _ in range(2):
        results = func.functional_call(found, given, X), torch.func.functional_call(expected, given, X)
        torch.testing.assert_close(*results)
    torch.testing.assert_close(dict(found.named_buffers()), dict(expected.named_buffers()))


def test_per_sample_gradients_of_a_module():
    module = network()

    def loss(parameters, x):
        return func.functional_call(module, parameters, (x,)).pow(2).sum()

    def plain(parameters, x):
        return torch.func.functional_call(module, parameters, (x,)).pow(2).sum()

    given = changed(module)
    found = func.vmap(func.grad(loss), in_dims=(None, 0))
    torch.testing.assert_close(found(given, X), torch.func.vmap(torch.func.grad(plain), in_dims=(None, 0))(given, X))
    assert found.last_rung == "cpp"


@pytest.mark.falls_back
def test_a_training_flag_is_read_at_every_call():
    module = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5)).double()
    given = changed(module)
    module.eval()
    once = func.functional_call(module, given, X)
    module.train()
    torch.manual_seed(1)
    found = func.functional_call(module, given, X)
    torch.manual_seed(1)
    torch.testing.assert_close(found, torch.func.functional_call(module, given, X))
    assert not torch.equal(found, once)
