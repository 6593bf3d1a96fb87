"""Train with the optimizers of a module: judge.py PACKAGE FILE CASE…, where there is nothing but torch and the package.

What comes of it is written to the file. Every step must be served by kernels, except where a case says otherwise.
"""

from __future__ import annotations

import copy
import importlib
import io
import pickle
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

sys.path.append(str(Path(__file__).parents[2]))
from trained import parameters, train  # beside this folder; it needs torch alone

STEPS = 20
SHAPES, MATRIX, ALL = ((7, 5), (5,), (2, 3, 4)), ((7, 5),), ((7, 5), (), (4, 1), (2, 3, 4))
F32 = torch.float32
# The optimizer, its hyper-parameters and options; dtype and shapes of parameters; whether kernels serve.
Case = tuple[str, dict[str, Any], torch.dtype, Any, bool]
CASES: dict[str, Case] = {
    "usual": ("Adam", {"lr": 0.01}, F32, SHAPES, True),
    "other numbers": ("Adam", {"betas": (0.8, 0.95), "weight_decay": 0.0, "eps": 1e-3}, F32, ((3, 1), (1, 2)), True),
    "tensors as numbers": ("Adam", {"lr": torch.tensor(0.02)}, F32, SHAPES, True),
    "clipped": ("Adam", {"lr": 0.01, "max_grad_norm": 0.5}, F32, SHAPES, True),
    "momentum": ("Averaged", {"momentum": 0.9, "nesterov": True, "warm": 1.0}, F32, SHAPES, True),
    "maximized": ("Averaged", {"maximize": True, "momentum": 0.9, "nesterov": True}, F32, SHAPES, False),
    "of half types": ("Adam", {"lr": 0.01}, torch.bfloat16, SHAPES, False),
    "norms": ("Trusting", {}, F32, MATRIX, True),
}
AT_NIGHT: dict[str, Case] = {
    "without dimensions": ("Adam", {}, F32, ALL, True),
    "ready": ("SGD", {"lr": 0.01}, F32, ALL, True),
    "ready, with momentum": ("SGD", {"lr": 0.01, "momentum": 0.9}, F32, ALL, True),
}


def optimizer_of(module: Any, case: str) -> torch.optim.Optimizer:
    """The optimizer of a case."""
    name, hyper, dtype, shapes, _ = {**CASES, **AT_NIGHT}[case]
    return getattr(module, name)(parameters(shapes, dtype), **copy.deepcopy(hyper))


def trained(module: Any, case: str) -> list[torch.Tensor]:
    """Parameters and states after some steps; on the way, the optimizer is saved, loaded, pickled and copied."""
    optimizer = optimizer_of(module, case)
    train(optimizer, STEPS // 2)
    other = optimizer_of(module, case)
    with torch.no_grad():
        for mine, theirs in zip(_params(other), _params(optimizer), strict=True):
            mine.copy_(theirs)
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file))
    last = copy.deepcopy(pickle.loads(pickle.dumps(other)))
    train(last, STEPS - STEPS // 2, seed=6)
    states = last.state_dict()["state"]
    return [
        *(p.detach() for p in _params(last)),
        *(v for s in states.values() for _, v in sorted(s.items()) if v is not None),
    ]


def unscaled(module: Any) -> list[torch.Tensor]:
    """Parameters after steps under a GradScaler, of which one overflows."""
    params = parameters(SHAPES)
    optimizer = module.Adam(params, lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    for count in range(3):
        for param in params:
            param.grad = torch.full_like(param, float("inf") if count == 1 else 64.0 * (count + 1))
        scaler.scale(torch.ones(()))
        scaler.step(optimizer)
        scaler.update()
    return [p.detach() for p in params]


def _params(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [param for group in optimizer.param_groups for param in group["params"]]


def main(name: str, file: str, *cases: str) -> None:
    """Judge a package."""
    sys.modules["opwright"] = None  # type: ignore[assignment]  # importing it raises
    warnings.simplefilter("error")
    package = importlib.import_module(name)
    buckets = importlib.import_module(f"{name}.runtime.buckets")
    plan = importlib.import_module(f"{name}.runtime.plan")
    by_definition = buckets.run_composed

    def refuse(*_: Any) -> None:
        raise AssertionError("the definition serves")

    results = {}
    for case in cases:
        by_kernels = case == "unscaled" or {**CASES, **AT_NIGHT}[case][-1]
        buckets.run_composed = plan.run_composed = refuse if by_kernels else by_definition
        with warnings.catch_warnings(record=True) as said:
            if not by_kernels:
                warnings.simplefilter("always")
            made = unscaled(package) if case == "unscaled" else trained(package, case)
            results[case] = made, [str(each.message) for each in said]
    torch.save((results, package.cpu_level), file)


if __name__ == "__main__":
    main(*sys.argv[1:])
