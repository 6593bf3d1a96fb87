"""Outputs of one call are differentiated one after the other as in eager, or raise as there.

Each case is a random function of some outputs, which share parts or do not, and a random sequence of backward passes.
"""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import opwright
from tests.suite.nights import mostly_at_night

pytestmark = pytest.mark.built_together

_PARTS = ("{0}.exp()", "{0} + 1", "{0} * {1}", "{0}.sin()", "{0} - {1}", "{0}.sum(0)", "-{0}", "{0}.sigmoid() * {1}")


def function_of(seed: int) -> Callable[..., tuple[Tensor, ...]]:
    """A function of two tensors that returns two to four values, each computed from some that came before.

    The last step to each saves a tensor, so that in eager, too, no output is differentiated twice.
    """
    choose = random.Random(seed)
    lines, values = [], ["x", "y"]
    for number in range(choose.randint(2, 6)):
        lines.append(f"    v{number} = {choose.choice(_PARTS).format(*(choose.choice(values) for _ in range(2)))}")
        values.append(f"v{number}")
    made = values[2:]
    returned = choose.sample(made, min(len(made), choose.randint(2, 4)))
    namespace: dict[str, Any] = {}
    text = "\n".join(
        [f"def passes_{seed}(x, y):", *lines, f"    return {', '.join(f'{name}.sin()' for name in returned)}"]
    )
    exec(text, namespace)
    function: Callable[..., tuple[Tensor, ...]] = namespace[f"passes_{seed}"]
    function.__annotations__ = {"x": Tensor, "y": Tensor}
    return function


def outcomes(function: Callable[..., tuple[Tensor, ...]], seed: int) -> list[tuple[Tensor | None, ...] | str]:
    """What a sequence of passes gives: gradients, until torch refuses one."""
    choose = random.Random(seed)
    leaves = [torch.linspace(0.5, 1.5, 6, dtype=torch.double).reshape(2, 3).requires_grad_() for _ in range(2)]
    outputs = function(*leaves)
    found: list[tuple[Tensor | None, ...] | str] = []
    for _ in range(5):
        used = choose.sample(range(len(outputs)), choose.choice((1, 1, 1, 2)))
        how = choose.choice(({}, {}, {"retain_graph": True}, {"create_graph": True}))
        total = sum((outputs[position] * (position + 1)).sum() for position in used)
        assert isinstance(total, Tensor)
        if not total.requires_grad:
            continue
        try:
            found.append(torch.autograd.grad(total, leaves, allow_unused=True, **how))
        except RuntimeError as error:
            if "backward through the graph a second time" not in str(error):
                raise
            return [*found, "raises"]  # after which it depends on the order of nodes what is left
    return found


@pytest.mark.parametrize("seed", mostly_at_night(range(300), 1))
def test_passes_run_and_raise_as_in_eager(seed: int) -> None:
    function = function_of(seed)
    operator = opwright.operator(function, name=f"tests::passes_{seed}")
    for order in range(6):  # in Python, and then by the tape
        found, expected = outcomes(operator, order), outcomes(function, order)
        assert [each if each == "raises" else "runs" for each in found] == [
            each if each == "raises" else "runs" for each in expected
        ]
        for gradients, wanted in zip(found, expected, strict=True):
            torch.testing.assert_close(gradients if wanted != "raises" else (), wanted if wanted != "raises" else ())


class ActorCritic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.actor, self.critic = nn.Linear(4, 2), nn.Linear(4, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.actor(x).softmax(-1), self.critic(x).sigmoid()


@pytest.mark.parametrize("tape", ["off", "now"])
def test_heads_of_a_module_are_trained_one_after_the_other(tape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPWRIGHT_TAPE", tape)
    torch.manual_seed(0)
    module = ActorCritic().double()
    served = opwright.module(module)
    for _ in range(3):
        found = []
        for each in (served, module):
            module.zero_grad(set_to_none=True)
            policy, value = each(torch.ones(3, 4, dtype=torch.double))
            policy.square().sum().backward()
            value.square().sum().backward()
            found.append([parameter.grad for parameter in module.parameters()])
        torch.testing.assert_close(*found)


def test_a_checkpoint_is_not_looked_into() -> None:
    def checkpointed(x: Tensor) -> tuple[Tensor, Tensor]:
        return checkpoint(lambda y: y.exp().sin(), x, use_reentrant=False), x.cos()

    operator = opwright.operator(checkpointed, name="tests::passes_checkpointed")
    x = torch.linspace(0, 1, 5, requires_grad=True)
    gradients = []
    for each in (operator, checkpointed):
        for output in each(x):
            gradients.append(torch.autograd.grad(output.sum(), x)[0])
    torch.testing.assert_close(gradients[:2], gradients[2:])
    assert operator.last_rung == "cpp"


@pytest.mark.parametrize("tape", ["off", "now"])
def test_the_last_pass_frees_what_was_saved(tape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPWRIGHT_TAPE", tape)

    @opwright.operator(name=f"tests::passes_apart_{tape}")
    def apart(x: Tensor, y: Tensor, factor: Tensor) -> tuple[Tensor, Tensor]:
        return x.exp() * x, y.sin() * factor

    x, y = (torch.ones(5, requires_grad=True) for _ in range(2))
    for _ in range(3):
        factor = torch.ones(5)
        first, second = apart(x, y, factor)
        saved = weakref.ref(factor)
        del factor
        first.sum().backward()
        assert saved() is not None
        second.sum().backward()
        gc.collect()
        assert saved() is None
