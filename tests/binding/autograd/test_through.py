"""Gradients that flow through one output of a call to another one are seen on the way, as in eager."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd.graph import register_multi_grad_hook
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.hooks import RemovableHandle

import opwright
from tests.suite.nights import mostly_at_night

pytestmark = pytest.mark.built_together

Values = list[Any]


def hidden(x: Tensor, w: Tensor):
    h = torch.tanh(x)
    return h, (h * w).sin()


def chain(x: Tensor, w: Tensor):
    a = x.sin() * w
    b = a.exp() + x
    return a, b, (b * w).cos()


def diamond(x, w):
    a = x.sigmoid() * w
    b, c = a.exp(), a.sin() * x
    return c, b * c + a, b, a


def views(x, w):
    h = (x * w).view(-1)
    return h, h[:4].exp(), h.view(2, 4).t() * 2


def parts_of_a_chunk(x: Tensor, w: Tensor):
    a, b = (x * w).sin().chunk(2, -1)
    return a, b, a * 2


def cell(x, w):
    c = (x * w).sigmoid() * w
    return torch.tanh(c) * x.sigmoid(), c


def infinite(x, w):
    h = (x * 0).sqrt() + x
    return h, h * w, (h * w).exp()


def in_place(x, w):
    h = torch.zeros_like(x)
    h[0] = x[0] * w[0]
    h.mul_(w)
    return h, h.sin() * x


def linear(x, w):
    h = x + w
    return h, h * 2


FUNCTIONS = (hidden, chain, diamond, views, parts_of_a_chunk, cell, infinite, in_place, linear)
BY_DAY = (hidden, diamond)


def leaves_of() -> list[Tensor]:
    return [
        torch.linspace(-0.5, 1.5, 8, dtype=torch.double).reshape(2, 4).requires_grad_(),
        torch.linspace(0.7, 1.9, 8, dtype=torch.double).reshape(2, 4).requires_grad_(),
    ]


def total_of(outputs: Sequence[Tensor], used: Sequence[int] | None = None) -> Tensor:
    chosen = range(len(outputs)) if used is None else used
    total = sum((outputs[position].sin() * (position + 1.5)).sum() for position in chosen)
    assert isinstance(total, Tensor)
    return total


def grads(tensors: Sequence[Tensor]) -> Values:
    return [tensor.grad if tensor.is_leaf or tensor.retains_grad else None for tensor in tensors]


def hook(output: Tensor, of_gradient: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Register a hook. PyTorch calls those of nodes with several results with None if another one is used, as here."""
    return output.register_hook(lambda grad: None if grad is None else of_gradient(grad))


def retain(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> Values:
    for output in outputs:
        output.retain_grad()
    total_of(outputs).backward()
    return grads([*outputs, *leaves])


def retain_and_go_from_one(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> Values:
    found = []
    for output in outputs:
        output.retain_grad()
    for position in range(len(outputs)):
        total_of(outputs, [position]).backward(retain_graph=True)
        found += [grad if grad is None else grad.clone() for grad in grads([*outputs, *leaves])]
    return found


def watch(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> Values:
    seen: dict[int, Tensor] = {}
    for position, output in enumerate(outputs):
        hook(output, lambda grad, position=position: seen.__setitem__(position, grad.clone()))
    total_of(outputs).backward()
    return [*map(seen.get, range(len(outputs))), *grads(leaves)]


def change(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> Values:
    for position, output in enumerate(outputs):
        hook(output, lambda grad, position=position: grad * (position + 2))
    total_of(outputs).backward()
    return grads(leaves)


def stop_at_one(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> Values:
    hook(outputs[0], torch.zeros_like)
    total_of(outputs).backward()
    return grads(leaves)


def watch_together(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> Values:
    seen: Values = []
    register_multi_grad_hook(list(outputs), seen.extend)
    total_of(outputs).backward()
    return [*seen, *grads(leaves)]


def ask_for_each(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> Values:
    asked = {"retain_graph": True, "allow_unused": True}
    pairs = [(a, b) for a in outputs for b in outputs]
    return [torch.autograd.grad(total_of([source]), target, **asked)[0] for source, target in pairs]


def ask_for_all(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> Values:
    return [*torch.autograd.grad(total_of(outputs), [*outputs, *leaves], allow_unused=True)]


def ask_below(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> Values:
    total_of(outputs).backward(inputs=[outputs[0], leaves[0]])
    return grads([outputs[0], *leaves])


def ask_and_differentiate(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> Values:
    first = torch.autograd.grad(total_of(outputs), [*outputs, *leaves], create_graph=True, allow_unused=True)
    flowing = [grad for grad in first if grad is not None and grad.requires_grad]
    return [*first, *torch.autograd.grad(total_of(flowing), leaves, allow_unused=True)]


def change_and_differentiate(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> Values:
    handles = [hook(output, torch.sin) for output in outputs]
    first = torch.autograd.grad(total_of(outputs), leaves, create_graph=True)
    for handle in handles:
        handle.remove()
    return [*first, *torch.autograd.grad(total_of(first), leaves, allow_unused=True)]


def change_nothing_any_more(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> Values:
    outputs[0].register_hook(lambda grad: grad * 2).remove()
    total_of(outputs).backward()
    return grads(leaves)


def one_after_the_other(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> Values:
    found: Values = []
    outputs[0].retain_grad()
    for position in range(len(outputs)):
        try:
            total_of(outputs, [position]).backward()
        except RuntimeError as error:
            return [*found, str(error)[:30]]
        found += [grad if grad is None else grad.clone() for grad in grads([outputs[0], *leaves])]
    return found


def twice(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> Values:
    outputs[0].register_hook(lambda grad: grad * 3)
    total_of(outputs).backward(retain_graph=True)
    total_of(outputs).backward()
    return grads(leaves)


WAYS = (
    retain, retain_and_go_from_one, watch, change, stop_at_one, watch_together, ask_for_each, ask_for_all, ask_below,
    ask_and_differentiate, change_and_differentiate, change_nothing_any_more, one_after_the_other, twice,
)  # fmt: skip


def assert_like_eager(found: Values, expected: Values) -> None:
    assert len(found) == len(expected)
    for ours, eagers in zip(found, expected, strict=True):
        if isinstance(eagers, Tensor):
            assert isinstance(ours, Tensor)
            torch.testing.assert_close(ours, eagers, equal_nan=True)
        else:
            assert ours == eagers


def outcome(way: Callable[..., Values], function: Callable[..., Sequence[Tensor]]) -> Values:
    leaves = leaves_of()
    return way(function(*leaves), leaves)


IN_CHECKPOINTS = (retain, watch, change, stop_at_one, watch_together, ask_for_all, ask_below)


@pytest.mark.parametrize("function", mostly_at_night(FUNCTIONS, BY_DAY))
def test_checkpoints(function):
    def checkpointed(called: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: checkpoint(called, *given, use_reentrant=False)

    operator = opwright.operator(function)
    for way in IN_CHECKPOINTS:
        expected = outcome(way, checkpointed(function))
        for _ in range(2):
            assert_like_eager(outcome(way, checkpointed(operator)), expected)


def test_hooks_of_nodes_look():
    def by_nodes(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> Values:
        seen: Values = []
        node = outputs[1].grad_fn
        node.register_prehook(lambda grads: (grads[0] * 3,))
        node.register_hook(lambda _, grads: seen.append(grads[0].clone()))
        total_of(outputs, [0, 2]).backward()
        return [*seen, *grads(leaves)]

    operator = opwright.operator(chain)
    for _ in range(2):
        assert_like_eager(outcome(by_nodes, operator), outcome(by_nodes, chain))


def feeding_of(function: Callable[..., Any]) -> Sequence[Sequence[int]]:
    def of_tensors(x: Tensor, w: Tensor) -> Any:
        return function(x, w)

    operator = opwright.operator(of_tensors)
    operator(*leaves_of())
    feeding: Sequence[Sequence[int]] = operator._variants.now().plans()[0].feeding
    return feeding


def of_late_hooks(seed: int, feeding: Sequence[Sequence[int]]) -> Callable[..., Values]:
    """Hooks that register one of an output that theirs is computed from, or remove it."""
    pairs = [(output, below) for output, others in enumerate(feeding) for below in others]

    def observe(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> Values:
        choose = random.Random(seed)
        seen: dict[int, Values] = {position: [] for position in range(len(outputs))}

        def watch(position: int) -> None:
            hook(outputs[position], lambda grad: (seen[position].append(grad.clone()), grad * 3)[1])

        for output, below in choose.sample(pairs, choose.randint(1, min(2, len(pairs)))):
            if choose.random() < 0.5:
                hook(outputs[output], lambda _, below=below: watch(below))
            else:
                early = hook(outputs[below], torch.zeros_like)
                hook(outputs[output], lambda _, early=early: early.remove())
        total_of(outputs).backward()
        return [*(each for one in seen.values() for each in one), *grads(leaves)]

    return observe


LATE, LATE_HOOK = 60, "in the middle of a backward pass"


def outcome_or_error(way: Callable[..., Values], function: Callable[..., Sequence[Tensor]]) -> Values | str:
    try:
        return outcome(way, function)
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("function", mostly_at_night(FUNCTIONS, BY_DAY))
def test_hooks_that_are_registered_on_the_way_see_everything_or_raise(function):
    operator, feeding = opwright.operator(function), feeding_of(function)
    alike = 0
    for seed in range(LATE):
        way = of_late_hooks(seed, feeding)
        found = outcome_or_error(way, operator)
        if isinstance(found, str):
            assert LATE_HOOK in found
        else:
            assert_like_eager(found, outcome(way, function))
            alike += 1
    assert alike > LATE // 4


@pytest.mark.parametrize("function", mostly_at_night(FUNCTIONS, BY_DAY))
def test_gradients_are_seen_on_the_way(function):
    operator = opwright.operator(function)
    for way in WAYS:
        expected = outcome(way, function)
        for _ in range(2):
            assert_like_eager(outcome(way, operator), expected)


def test_what_others_are_computed_from_is_in_the_plan():
    assert feeding_of(hidden) == ((), (0,))
    assert feeding_of(chain) == ((), (0,), (0, 1))
    assert feeding_of(parts_of_a_chunk) == ((), (), (0,))


class Model(nn.Module):
    """Gives its loss beside its logits."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x, target):
        features = self.first(x).relu()
        logits = self.second(features)
        return {"loss": functional.cross_entropy(logits, target), "logits": logits, "features": features}


def saliency(model: Callable[..., dict[str, Tensor]], parameters: Sequence[Tensor]) -> Values:
    x = torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
    found = model(x, torch.tensor([0, 2, 1]))
    found["logits"].retain_grad()
    by_features = torch.autograd.grad(found["loss"], found["features"], retain_graph=True)[0]
    found["loss"].backward()
    values = [x.grad, found["logits"].grad, by_features, *(parameter.grad.clone() for parameter in parameters)]
    for parameter in parameters:
        parameter.grad = None
    return values


def test_the_logits_of_a_model_get_the_gradient_of_its_loss():
    torch.manual_seed(0)
    model = Model()
    served = opwright.module(model)
    parameters = list(model.parameters())
    expected = saliency(model, parameters)
    for _ in range(3):
        assert_like_eager(saliency(served, parameters), expected)


def test_random_numbers_are_drawn_again():
    def noisily_hidden(x, w):
        h = functional.dropout(x * w, 0.5)
        return h, h.sin() * torch.rand_like(x)

    operator = opwright.operator(noisily_hidden)
    for way in (change, ask_for_each, retain):
        found = []
        for function in (noisily_hidden, operator, operator):
            torch.manual_seed(3)
            found.append([*outcome(way, function), torch.rand(1, dtype=torch.double)])
        for ours in found[1:]:
            assert_like_eager(ours, found[0])


def scaled(x, k):
    h = torch.tanh(x)
    return h, (h * k).sin()


def shared_along(x, dim):
    h = x.exp()
    return h, torch.softmax(h, dim)


def above(x, bound):
    h = x.sin()
    return h, h.clamp(min=bound) * h


def of_settings(x, settings):
    h = x.cos()
    return h, h * settings["scale"] + settings["shift"]


NUMBERS = (
    (scaled, (2.0, 3.0, 3.0, 0.0, 5, 6, 6, -1.5)),
    (shared_along, (0, 1, 1, -1, 0)),
    (above, (0.1, 0.2, 0.3, -0.2)),
    (of_settings, ({"scale": 2.0, "shift": 1.0}, {"scale": 3.0, "shift": 1.0}, {"scale": 3.0, "shift": 2.0})),
)


@pytest.mark.parametrize(("function", "values"), NUMBERS)
def test_numbers_that_change(function, values):
    operator = opwright.operator(function)
    for value in values:
        seen = []
        for called in (function, operator):
            x = torch.linspace(-0.5, 1.5, 8, dtype=torch.double).reshape(2, 4).requires_grad_()
            seen.append([*retain(called(x, value), [x]), *change(called(x, value), [x])])
        assert_like_eager(seen[1], seen[0])


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2.0

    def forward(self, x):
        h = x.tanh()
        return h, (h * self.scale).sin()


def test_a_number_of_a_module_that_changes():
    module = Scaled()
    served = opwright.module(module)
    for module.scale in (2.0, 3.0, 3.0, 4.0):
        seen = []
        for called in (module, served):
            x = torch.linspace(-0.5, 1.5, 8, dtype=torch.double).requires_grad_()
            seen.append(retain(called(x), [x]))
        assert_like_eager(seen[1], seen[0])


def test_a_batch_of_gradients():
    operator = opwright.operator(hidden)
    basis = torch.eye(8, dtype=torch.double).reshape(8, 2, 4)

    def batched_below(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> Values:
        return [*torch.autograd.grad(outputs[1], leaves, basis, is_grads_batched=True)]

    def batched(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> Values:
        return [*torch.autograd.grad(outputs[1], [outputs[0], *leaves], basis, is_grads_batched=True)]

    for way in (batched_below, batched, batched):
        assert_like_eager(outcome(way, operator), outcome(way, hidden))


def test_nodes_end_with_their_outputs():
    operator = opwright.operator(chain)
    gc.collect()
    gc.disable()
    try:
        leaves = leaves_of()
        outputs = operator(*leaves)
        gone = weakref.ref(leaves[0])
        del outputs, leaves
        assert gone() is None
    finally:
        gc.enable()


_STEPS = (
    "{0}.exp()", "{0} + 1", "{0} * {1}", "{0}.sin()", "{0} - {1}", "-{0}", "{0}.sigmoid() * {1}", "{0}.t().exp().t()",
    "torch.cat({0}.chunk(2, -1)[::-1], -1) * {1}", "{0}.view(-1).cos().view(2, 4)", "{0} @ {1}.t() @ {0}",
)  # fmt: skip


def function_of(seed: int) -> Callable[..., tuple[Tensor, ...]]:
    """A function of two tensors that returns two to four values, each computed from some that came before."""
    choose = random.Random(seed)
    lines, values = [], ["x", "y"]
    for number in range(choose.randint(3, 7)):
        step = choose.choice(_STEPS).format(*(choose.choice(values[-3:]) for _ in range(2)))
        lines.append(f"    v{number} = ({step}) * 0.5")
        values.append(f"v{number}")
    made = values[2:]
    returned = choose.sample(made, min(len(made), choose.randint(2, 4)))
    namespace: dict[str, Any] = {"torch": torch}
    exec("\n".join([f"def through_{seed}(x, y):", *lines, f"    return {', '.join(returned)}"]), namespace)
    function: Callable[..., tuple[Tensor, ...]] = namespace[f"through_{seed}"]
    function.__annotations__ = {"x": Tensor, "y": Tensor}
    return function


def random_observation(seed: int) -> Callable[..., Values]:
    """Retained gradients, hooks, and questions for gradients, of which the results are comparable.

    Where gradients with respect to some outputs are asked for, torch runs the hooks of all results of their nodes, and
    gives a gradient from before its hooks or from behind them, as its node goes on or not. A call has one node here.
    """

    def observe(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> Values:
        choose = random.Random(seed)
        how = choose.choice(("backward", "grad", "second"))
        used = choose.sample(range(len(outputs)), choose.randint(1, len(outputs)))
        asked = choose.sample(range(len(outputs)), choose.randint(0, len(outputs)))
        seen: dict[int, Values] = {position: [] for position in range(len(outputs))}
        handles = []
        for position, output in enumerate(outputs):
            for _ in range(choose.choice((0, 1, 1, 2))):
                looks = choose.choice(("retain", "watch", "change", "stop"))
                if how != "backward" and (position in asked or looks in ("retain", "watch")):
                    continue
                if looks == "retain":
                    output.retain_grad()
                elif looks == "watch":
                    handles.append(hook(output, lambda grad, into=seen[position]: into.append(grad.clone())))
                elif looks == "change":
                    handles.append(hook(output, lambda grad, by=position + 2: grad * by))
                else:
                    handles.append(hook(output, torch.zeros_like))
        total = total_of(outputs, used)
        if how == "backward":
            total.backward(retain_graph=True)
            total.backward()
            return [*(each for one in seen.values() for each in one), *grads([*outputs, *leaves])]
        targets = [*(outputs[position] for position in asked), choose.choice(leaves)]
        found = list(torch.autograd.grad(total, targets, allow_unused=True, create_graph=how == "second"))
        for handle in handles:
            handle.remove()
        flowing = [each for each in found if each is not None and each.requires_grad]
        return [*found, *torch.autograd.grad(total_of(flowing), leaves, allow_unused=True)] if flowing else found

    return observe


@pytest.mark.parametrize("seed", mostly_at_night(range(60), 4))
def test_random_functions(seed):
    function = function_of(seed)
    operator = opwright.operator(function)
    for more in range(6):
        way = random_observation(100 * seed + more)
        assert_like_eager(outcome(way, operator), outcome(way, function))
