"""Optimizers from papers, against their algorithms written out in float64 with NumPy's operations alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

import opwright.optim
from opwright.optim.base import DEFAULT_DTYPES
from tests.suite.nights import mostly_at_night

Arrays = dict[str, Any]


def lion(x: Any, g: Any, s: Arrays, t: int) -> Any:
    lr, b1, b2, decay = 0.01, 0.9, 0.99, 0.1
    m = s.get("m", 0 * x)
    update = np.sign(b1 * m + (1 - b1) * g)
    s["m"] = b2 * m + (1 - b2) * g
    return x - lr * (update + decay * x)


def lamb(x: Any, g: Any, s: Arrays, t: int) -> Any:
    lr, b1, b2, eps, decay = 0.01, 0.9, 0.999, 1e-6, 0.1
    s["m"] = b1 * s.get("m", 0 * x) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0 * x) + (1 - b2) * g**2
    r = (s["m"] / (1 - b1**t)) / (np.sqrt(s["v"] / (1 - b2**t)) + eps) + decay * x
    return x - lr * np.linalg.norm(x) / np.linalg.norm(r) * r


def adan(x: Any, g: Any, s: Arrays, t: int) -> Any:
    lr, b1, b2, b3, eps, decay = 0.01, 0.98, 0.92, 0.99, 1e-8, 0.1
    change = g - s.get("g", g)
    s["m"] = b1 * s.get("m", 0 * x) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0 * x) + (1 - b2) * change
    s["n"] = b3 * s.get("n", 0 * x) + (1 - b3) * (g + b2 * change) ** 2
    s["g"] = g
    rate = lr / (np.sqrt(s["n"] / (1 - b3**t)) + eps)
    return (x - rate * (s["m"] / (1 - b1**t) + b2 * s["v"] / (1 - b2**t))) / (1 + decay * lr)


def schedule_free(y: Any, g: Any, s: Arrays, t: int) -> Any:
    lr, b1, b2, eps, decay, warmup = 0.01, 0.9, 0.999, 1e-8, 0.1, 4
    s.setdefault("z", y)
    s.setdefault("x", y)
    rate = lr * np.sqrt(1 - b2**t) * min(1, t / warmup)  # the corrected second moment, as algorithm 1 has it
    s["v"] = b2 * s.get("v", 0 * y) + (1 - b2) * g**2
    plain = lr * min(1, t / warmup)
    s["z"] = s["z"] - rate * g / (np.sqrt(s["v"]) + eps * np.sqrt(1 - b2**t)) - plain * decay * y
    s["w"] = s.get("w", 0.0) + plain**2
    c = plain**2 / s["w"]
    s["x"] = (1 - c) * s["x"] + c * s["z"]
    return (1 - b1) * s["z"] + b1 * s["x"]


def adafactor(x: Any, g: Any, s: Arrays, t: int) -> Any:
    decay, eps1, eps2, d = 1 - t**-0.8, np.finfo(np.float64).eps, 1e-3, 1.0
    s["r"] = decay * s.get("r", 0) + (1 - decay) * (g**2).mean(1, keepdims=True)
    s["c"] = decay * s.get("c", 0) + (1 - decay) * (g**2).mean(0, keepdims=True)
    update = g / np.sqrt(s["r"] * s["c"] / s["r"].mean())
    update = update / max(1, np.sqrt((update**2).mean()) / d)
    return x - min(1e-2, 1 / np.sqrt(t)) * max(eps2, np.sqrt((x**2).mean())) * update + 0 * eps1


PAPERS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "Lion": (lion, {"lr": 0.01, "weight_decay": 0.1}),
    "LAMB": (lamb, {"lr": 0.01, "weight_decay": 0.1}),
    "Adan": (adan, {"lr": 0.01, "weight_decay": 0.1}),
    "ScheduleFreeAdamW": (schedule_free, {"lr": 0.01, "weight_decay": 0.1, "warmup_steps": 4}),
    "Adafactor": (adafactor, {}),
}


@pytest.mark.parametrize("name", sorted(PAPERS))
def test_steps_are_those_of_the_paper(name: str) -> None:
    step, hyper = PAPERS[name]
    generator = np.random.default_rng(0)
    x, states = generator.standard_normal((6, 5)), Arrays()
    param = torch.tensor(x, requires_grad=True)
    optimizer = getattr(opwright.optim, name)([param], **hyper)
    for t in range(1, 9):
        g = generator.standard_normal((6, 5))
        param.grad = torch.tensor(g)
        optimizer.step()
        x = step(x, g, states, t)
        rtol = 1e-7 if name == "ScheduleFreeAdamW" else 1e-9  # whose sum of weights is a float32
        np.testing.assert_allclose(param.detach().numpy(), x, rtol=rtol, atol=1e-12)


def test_the_average_of_a_schedule_free_optimizer_is_a_state() -> None:
    param = torch.ones(3, requires_grad=True)
    optimizer = opwright.optim.ScheduleFreeAdamW([param], lr=0.1)
    for _ in range(200):
        param.grad = 2 * param.detach()
        optimizer.step()
    assert optimizer.state[param]["average"].abs().max() < 0.2


def test_muon_makes_updates_nearly_orthogonal() -> None:
    torch.manual_seed(0)
    param = torch.zeros(8, 5, requires_grad=True)
    param.grad = torch.randn(8, 5)
    opwright.optim.Muon([param], lr=1.0, weight_decay=0.0, nesterov=False).step()
    values = torch.linalg.svdvals(param.detach()) / (8 / 5) ** 0.5
    assert ((values > 0.6) & (values < 1.3)).all()


def test_muon_takes_matrices_only() -> None:
    with pytest.raises(ValueError, match="Muon only supports 2D parameters whereas we found a parameter with size"):
        opwright.optim.Muon([torch.ones(3, requires_grad=True)])


@pytest.mark.parametrize("dtypes", mostly_at_night([(torch.float32,), DEFAULT_DTYPES], by_day=0, whole=True), ids=len)
def test_muon_is_within_twice_eagers_error(dtypes: Sequence[torch.dtype]) -> None:
    """Its iteration is in bfloat16, so it is judged against the definition without that rounding."""
    verdict = opwright.optim.Muon.check(dtypes=dtypes)
    assert verdict.passed, verdict
    errors = [row.error / row.eager_error for row in verdict.rows if row.error and row.eager_error]
    assert len(errors) >= 3
    assert max(errors) < 2


def test_the_check_of_muon_sees_another_rate() -> None:
    from opwright.optim.telling.checked import checked

    def make(params: list[torch.Tensor]) -> torch.optim.Optimizer:
        return opwright.optim.Muon(params, lr=1.1e-3)

    muon = opwright.optim.Muon
    assert not checked(make, muon.definition, muon._defaults({}), (torch.float32,)).passed
