"""Modules that call an operator, as models do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from opwright.auditing.case import Case, Tensors, loss_of


class Calling(nn.Module):
    """Calls a function with its arguments."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""
        return self.function(*args, **kwargs)


class Layer(nn.Module):
    """Calls a case: its argument, scaled by a parameter, is the first input; the other inputs are parameters."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        first, *rest = case.inputs
        self.case = case
        self.gain = nn.Parameter(torch.ones((), dtype=first.dtype, device=first.device))
        self.weights = nn.ParameterList(rest)

    def forward(self, x: torch.Tensor) -> Tensors:
        """Call it."""
        return self.case.floats(self.gain * x, *self.weights)

    def loss(self, parameters: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        """Call it with other parameters, and reduce the results to a number."""
        return loss_of(torch.func.functional_call(self, parameters, (x,)))
