"""What a wheel computes where opwright is not: wheel_program.py PACKAGE FILE DEVICE RUNG; with torch and the package.

Writes what is served by what, and results and gradients, on the processor.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from typing import Any

import torch

SIZES: dict[str, tuple[tuple[int, ...], ...]] = {
    "cell": ((8, 15), (8, 5)),
    "norm": ((70, 33), (33,), (33,)),
    "largest": ((40, 300),),
    "scale": ((8, 5),),
}
STRIDED = ("cell", "norm")
NUMBERS: dict[str, tuple[float, ...]] = {"scale": (2.0,)}  # on a GPU, floats are those of the samples


def given(name: str, device: str, *, strided: bool = False) -> list[torch.Tensor]:
    """The same arguments in each process and on each device."""
    generator = torch.Generator().manual_seed(7)
    drawn = [torch.randn(size, generator=generator).to(device) for size in SIZES[name]]
    laid = [each.t().contiguous().t() if strided and each.dim() == 2 else each for each in drawn]
    return [each.requires_grad_() for each in laid]


def results_of(function: Any, arguments: list[torch.Tensor], *numbers: float) -> list[torch.Tensor]:
    """Results, then gradients; without gradients, the results again."""
    found = function(*arguments, *numbers)
    found = [found] if isinstance(found, torch.Tensor) else list(found)
    ends = [each for each in found if each.requires_grad]
    incoming = [torch.arange(e.numel(), device=e.device).cos().reshape(e.shape).to(e) for e in ends]
    gradients = torch.autograd.grad(ends, arguments, incoming)
    with torch.no_grad():
        again = function(*arguments, *numbers)
    again = [again] if isinstance(again, torch.Tensor) else list(again)
    return [each.detach().cpu() for each in (*found, *gradients, *again)]


def cases() -> list[tuple[str, bool]]:
    """Names of operators, and whether arguments are strided."""
    return [*((name, False) for name in SIZES), *((name, True) for name in STRIDED)]


def main(name: str, file: str, device: str, rung: str) -> None:
    """Run all operators of a package."""
    sys.modules["opwright"] = None  # type: ignore[assignment]  # importing it raises
    warnings.simplefilter("error")
    package = importlib.import_module(name)
    made = {}
    for case in cases():
        operator, numbers = getattr(package, case[0]), NUMBERS.get(case[0], ())
        made[case] = results_of(operator, given(case[0], device, strided=case[1]), *numbers)
        assert operator.last_rung == rung, f"{case}: {operator.last_rung} instead of {rung}"
        by_torch = results_of(operator.overload, given(case[0], device, strided=case[1]), *numbers)
        for mine, other in zip(made[case], by_torch, strict=True):
            torch.testing.assert_close(mine, other, rtol=0, atol=0)
    torch.save(made, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
