"""What an optimizer of a package computes where opwright is not: optimizer_program.py PACKAGE NAME FILE DEVICE.

Every step is served by kernels. It uses torch and the package alone.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from typing import Any

import torch

SHAPES = ((7, 5), (5,), (2, 3, 4), (50, 100))
OPTIONS: dict[str, dict[str, Any]] = {"usual": {"lr": 0.01}, "clipped": {"lr": 0.01, "max_grad_norm": 0.5}}


def trained(cls: Any, device: str) -> list[torch.Tensor]:
    """Parameters and states after steps, in each way, on the processor."""
    found: list[torch.Tensor] = []
    for options in OPTIONS.values():
        generator = torch.Generator().manual_seed(3)
        params = [torch.randn(shape, generator=generator).to(device).requires_grad_() for shape in SHAPES]
        optimizer = cls([{"params": params[:2], "lr": 0.1}, {"params": params[2:]}], **options)
        for _ in range(5):
            for param in params:
                param.grad = torch.randn(param.shape, generator=generator).to(device)
            optimizer.step()
        states = [value for state in optimizer.state.values() for _, value in sorted(state.items())]
        found += [each.detach().cpu() for each in (*params, *states)]
    return found


def main(name: str, of: str, file: str, device: str) -> None:
    """Train with an optimizer of a package."""
    sys.modules["opwright"] = None  # type: ignore[assignment]  # importing it raises
    warnings.simplefilter("error")
    package = importlib.import_module(name)

    def refuse(*_: Any) -> None:
        raise AssertionError("the definition serves")

    for module in ("buckets", "plan"):
        importlib.import_module(f"{name}.runtime.{module}").run_composed = refuse  # type: ignore[attr-defined]
    torch.save(trained(getattr(package, of), device), file)


if __name__ == "__main__":
    main(*sys.argv[1:])
