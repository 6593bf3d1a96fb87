"""A served module beside the plain one: outputs, gradients and state after several steps."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_map_only

import opwright


def compare(
    plain: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None, *, steps: int = 2
) -> nn.Module:
    """Take steps with a module and its served copy from the same seeds; give the served one."""
    served = opwright.module(copy.deepcopy(plain))
    for step in range(steps):
        expected = outcome(plain, args, kwargs or {}, step)
        assert_same(outcome(served, args, kwargs or {}, step), expected)
    return served


def outcome(module: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], seed: int) -> Any:
    """What a call returns and leaves behind: result, gradients, state, and where the random stream is."""
    torch.manual_seed(seed)
    given = tree_map_only(torch.Tensor, _fresh, (tuple(args), dict(kwargs)))
    module.zero_grad()
    result = module(*given[0], **given[1])
    after = torch.get_rng_state()
    leaves, layout = tree_flatten(result)
    losses = [_weighted(leaf) for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if losses:
        sum(losses).backward()
    inputs = [leaf.grad for leaf in tree_flatten(given)[0] if isinstance(leaf, torch.Tensor)]
    parameters = {name: parameter.grad for name, parameter in module.named_parameters()}
    state = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    values = [leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    return (
        str(layout),
        [leaf.requires_grad for leaf in leaves if isinstance(leaf, torch.Tensor)],
        values,
        inputs,
        parameters,
        state,
        after,
    )


def assert_same(found: Any, expected: Any) -> None:
    """Compare two outcomes; rounding may differ, nothing else."""
    torch.testing.assert_close(found[2:], expected[2:], rtol=1e-4, atol=1e-5, equal_nan=True)
    assert found[:2] == expected[:2]


def _fresh(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def _weighted(tensor: torch.Tensor) -> Any:
    weights = torch.arange(1, tensor.numel() + 1, dtype=torch.float32).cos().reshape(tensor.shape)
    return (tensor * weights.to(tensor.real.dtype)).abs().sum() if tensor.is_complex() else (tensor * weights).sum()
