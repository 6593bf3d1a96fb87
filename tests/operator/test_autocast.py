"""Under autocast an operator does what its operations do there, or what its policy says; compiled too."""

import pytest
import torch
from torch import Tensor

import opwright
from opwright.errors import AutocastRefused
from tests.suite.nights import mostly_at_night


def layer(x: Tensor, weight: Tensor) -> Tensor:
    return torch.tanh(x @ weight) + x.sum()


def in_a_list(given: list[Tensor]) -> Tensor:
    return layer(*given)


low, high = torch.bfloat16, torch.float32
POLICIES = {None: None, "low": low, "fp32": high, "promote": high}  # what the arguments below are cast to
OPERATORS = {policy: opwright.operator(name=f"layer_{policy}", autocast=policy)(layer) for policy in POLICIES}
SHOWN = {policy: opwright.operator(name=f"shown_{policy}", autocast=policy, inline=True)(layer) for policy in POLICIES}


def inputs():
    torch.manual_seed(0)
    return torch.randn(4, 8).bfloat16().requires_grad_(), torch.randn(8, 3, requires_grad=True)


def expected_of(policy, x, weight):
    """What the function gives for cast arguments; without a policy, what it gives under autocast."""
    if policy is None:
        with torch.autocast("cpu", low):
            return layer(x, weight)
    return layer(x.to(POLICIES[policy]), weight.to(POLICIES[policy]))


def check(policy, function):
    """Call it under autocast, and compare its result and its gradients."""
    ours, theirs = inputs(), inputs()
    with torch.autocast("cpu", low):
        result = function(*ours)
    expected = expected_of(policy, *theirs)
    assert result.dtype == expected.dtype
    torch.testing.assert_close(result, expected, rtol=0.02, atol=0.02)
    result.float().square().sum().backward()
    expected.float().square().sum().backward()
    for leaf, other in zip(ours, theirs, strict=True):
        assert leaf.grad.dtype == other.grad.dtype
        torch.testing.assert_close(leaf.grad, other.grad, rtol=0.05, atol=0.5)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_call(policy):
    operator = OPERATORS[policy]
    check(policy, operator)
    assert operator.last_rung == ("composed" if policy is None else "cpp")
    check(policy, operator.overload)


COMPILED = [*((OPERATORS, policy) for policy in POLICIES), *((SHOWN, policy) for policy in POLICIES)]


@pytest.mark.parametrize(("operators", "policy"), mostly_at_night(COMPILED, by_day=[COMPILED[-1]]))
def test_a_compiled_call(operators, policy):
    """The dtype that a graph was compiled for is the one that it gives."""
    operator = operators[policy]
    torch._dynamo.reset()
    check(policy, torch.compile(lambda *given: operator(*given), backend="aot_eager", fullgraph=True))


def test_an_operator_of_a_structure():
    operator = opwright.operator(autocast="low")(in_a_list)
    check("low", lambda *given: operator(list(given)))
    assert operator.last_rung == "cpp"


def test_transforms_under_autocast():
    x, weight = (tensor.detach() for tensor in inputs())
    with torch.autocast("cpu", low):
        found = torch.vmap(OPERATORS["fp32"], (0, None))(x.unsqueeze(1), weight)
    torch.testing.assert_close(found, torch.vmap(layer, (0, None))(x.float().unsqueeze(1), weight))


def test_float64_stays_what_it_is():
    x, weight = (tensor.double() for tensor in inputs())
    with torch.autocast("cpu", low):
        assert OPERATORS["low"](x, weight).dtype == torch.float64


@pytest.mark.parametrize(
    ("options", "fact", "hint"),
    [
        ({"autocast": "high"}, "autocast='high' is no policy", "write one of 'low', 'fp32', 'promote'"),
        ({"autocast": "low", "mutates": ("x",)}, "would change a copy of 'x'", "leave autocast= out"),
    ],
)
def test_what_is_refused(options, fact, hint):
    with pytest.raises(AutocastRefused) as raised:
        opwright.operator(**options)(layer)
    assert fact in raised.value.fact
    assert hint in raised.value.hint
    assert raised.value.place.file == __file__
