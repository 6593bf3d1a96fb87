"""First values: the states of a parameter are made when a step needs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from opwright.optim.definition import MASTER, STEP, Definition
from opwright.optim.options import Options

_HALVES = (torch.bfloat16, torch.float16)
OF_STEPS = (torch.float32, torch.float64)


def begin(
    definition: Definition, options: Options, param: torch.Tensor, state: dict[str, Any], hyper: Mapping[str, Any]
) -> None:
    """Give a parameter the states that it needs and does not have.

    Args:
        definition: The update.
        options: The dtypes of states.
        param: The parameter.
        state: Its states.
        hyper: The hyper-parameters of its group.
    """
    if not isinstance(step := state.get(STEP), torch.Tensor) or step.dtype not in OF_STEPS or step.is_cuda:
        # a state_dict of torch.optim.SGD has no step, and old ones have numbers
        taken = float(step) if step is not None else float(bool(state))
        wide = torch.get_default_dtype() == torch.float64  # as torch.optim has it
        state[STEP] = torch.tensor(taken, dtype=torch.float64 if wide else torch.float32)
    if options.master and param.dtype in _HALVES and MASTER not in state:
        state[MASTER] = param.detach().to(torch.float32, memory_format=torch.preserve_format)
    for name in definition.states:
        if state.get(name) is not None:
            continue
        made = definition.start(name, state.get(MASTER, param), hyper)
        if made is None:
            continue
        dtype = options.dtype_of(name)
        has_dtype = dtype and made.is_floating_point() and (made.dim() or not param.dim())
        state[name] = made.to(dtype) if has_dtype else made
        if name in definition.restarts:
            state[STEP] = torch.zeros_like(state[STEP])
