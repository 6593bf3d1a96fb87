"""Random updates that reduce over whole tensors, as one kernel for all parameters, against float64."""

from __future__ import annotations

import random

import pytest
import torch

import opwright
from opwright.toolchain.modules import module_of_text
from tests.optim.test_cuda import on_host
from tests.optim.trained import parameters
from tests.suite.nights import mostly_at_night

SHAPES = ((7, 5), (3,), (130, 67), (2, 3, 4))
SEEDS = range(40)
REDUCTIONS = ("{}.sum() / 50", "{}.mean()", "{}.abs().amax()", "{}.amin()", "{}.square().mean().sqrt()", "{}.norm()")
ELEMENTS = (
    "{0} * {1}", "{0} - {1}", "{0} + 0.5 * {1}", "{0} / (1 + {1}.abs())", "torch.tanh({0}) + {1}",
    "torch.maximum({0}, 0.5 * {1})",
)  # fmt: skip


def update_of(seed: int) -> str:
    """The text of an update: values of elements, and numbers of the whole tensor that are computed of them."""
    draw = random.Random(seed)
    elements, numbers, lines = ["param", "grad", "average"], ["step"], []
    for count in range(draw.randint(1, 4)):
        value = draw.choice(ELEMENTS).format(draw.choice(elements), draw.choice(elements))
        lines.append(f"value_{count} = {value}")
        elements.append(f"value_{count}")
        lines.append(f"number_{count} = {draw.choice(REDUCTIONS).format(draw.choice(elements))}")
        numbers.append(f"number_{count}")
        lines.append(f"scaled_{count} = {draw.choice(elements)} / (2 + {draw.choice(numbers[1:])} ** 2)")
        elements.append(f"scaled_{count}")
    lines.append(f"average = 0.5 * average + 0.1 * torch.tanh({draw.choice(elements)})")
    lines.append(f"return param - lr * torch.tanh({elements[-1]} * {draw.choice(numbers)}), average")
    body = "\n    ".join(lines)
    return f"import torch\n\ndef Update(param, grad, average, step, *, lr=0.1):\n    {body}\n"


@pytest.mark.parametrize("seed", mostly_at_night(SEEDS, 1))
def test_updates_are_their_definitions(seed: int) -> None:
    text, most = update_of(seed), 1.0 if seed % 2 else None
    made = opwright.optimizer(state=("average",))(module_of_text(f"<update {seed}>", text).Update)
    for cls in (made, on_host(made)):
        params, exact = parameters(SHAPES), [param.detach().double() for param in parameters(SHAPES)]
        optimizer, states = cls(params, max_grad_norm=most), None
        for step in range(1, 4):
            grads = [torch.randn(p.shape, generator=torch.Generator().manual_seed(step)) for p in params]
            for param, grad in zip(params, grads, strict=True):
                param.grad = grad
            optimizer.step()
            wide = [grad.double() for grad in grads]
            factor = 1.0 if most is None else torch.clamp(most / (torch.nn.utils.get_total_norm(wide) + 1e-6), max=1.0)
            exact, states = made.functional(exact, [grad * factor for grad in wide], states, float(step))
        for param, right in zip(params, exact, strict=True):
            torch.testing.assert_close(
                param.detach().double(), right, rtol=1e-4, atol=1e-4, msg=lambda m: f"{text}\n{m}"
            )
        assert all(not v.one_by_one for _, found in cls.variants.all() for v in found), text


def test_the_comparison_sees_another_reduction() -> None:
    text = update_of(0)
    assert ".mean()" in text or ".sum()" in text
    other = text.replace(".mean()", ".amax()").replace(".sum() / 50", ".amin()")
    grad, found = torch.randn(7, 5, generator=torch.Generator().manual_seed(1)), []
    for each in (text, other):
        made = opwright.optimizer(state=("average",))(module_of_text(f"<other {len(found)}>", each).Update)
        found.append(made.functional(parameters(SHAPES[:1]), [grad], None, 1.0)[0][0])
    with pytest.raises(AssertionError):
        torch.testing.assert_close(*found, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", mostly_at_night(["Update", "Max", "Numbers", "Launch", "Table", "Sum", "Pass"], 0))
def test_an_update_may_be_called_as_a_function_of_our_headers(name: str) -> None:
    """Update is how those of the test above are called."""
    text = f"def {name}(param, grad, step, *, lr=0.1):\n    return param - lr * grad / (1 + 0 * grad.amax())\n"
    made = opwright.optimizer()(module_of_text(f"<{name}>", text).__dict__[name])
    for cls in (made, on_host(made)):
        (param,) = parameters(SHAPES[:1])
        before = param.detach().clone()
        param.grad = torch.ones_like(param)
        cls([param]).step()
        torch.testing.assert_close(param.detach(), before - 0.1)
