"""First values of states of the ready optimizers."""

from __future__ import annotations

from typing import Any

import torch


def zeros_if(condition: str) -> Any:
    """Zeros like the parameter if a hyper-parameter is set; else there is no such state."""

    def start(param: torch.Tensor, **hyper: Any) -> torch.Tensor | None:
        return torch.zeros_like(param, memory_format=torch.preserve_format) if hyper[condition] else None

    return start


def filled_with(name: str) -> Any:
    """The value of a hyper-parameter everywhere; in both parts of complex numbers."""

    def start(param: torch.Tensor, **hyper: Any) -> torch.Tensor:
        made = torch.zeros_like(param, memory_format=torch.preserve_format)
        (torch.view_as_real(made) if made.is_complex() else made).fill_(hyper[name])
        return made

    return start


def number(value: float | str) -> Any:
    """A tensor without dimensions: a value, or that of a hyper-parameter; in the dtype of `step`."""

    def start(param: torch.Tensor, **hyper: Any) -> torch.Tensor:
        wide = torch.get_default_dtype() == torch.float64  # as torch.optim has it
        dtype = torch.float64 if wide else torch.float32
        return torch.tensor(float(hyper[value] if isinstance(value, str) else value), dtype=dtype)

    return start
