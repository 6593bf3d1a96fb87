"""Structures and changed arguments on the hot path: nothing is held on to, and threads do not mix them up."""

import gc
import sys
import threading
import weakref
from collections import OrderedDict
from typing import NamedTuple

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import register_pytree_node

import opwright


class Pair(NamedTuple):
    a: Tensor
    b: Tensor


class Outputs(OrderedDict):
    """A container that is registered with torch's trees, as those of libraries are."""


register_pytree_node(
    Outputs,
    lambda held: (list(held.values()), list(held)),
    lambda values, names: Outputs(zip(names, values, strict=True)),
)


@opwright.operator
def mixed(parts: dict[str, list[Tensor]], word: str = "a", *rest: Tensor, k: float = 2.0, **named: Tensor) -> dict:
    total = sum(rest, parts[word][0] * k) + sum(named.values())
    more = Outputs(twice=total * 2.0, held=OrderedDict(total=total, none=None))
    return {"pair": Pair(total, parts[word][0]), "one": 1.5, "all": [total, total], "more": more}


@opwright.operator(mutates=["x"])
def moved(x: Tensor, y: Tensor, k: float = 0.5) -> tuple[Tensor, Tensor]:
    x.mul_(y).sub_(k)
    return x, x * y


def arguments(*, requires_grad=True):
    x, y, z, u = (torch.randn(3, requires_grad=requires_grad) for _ in range(4))
    return ({"a": [x * 1], "b": [y * 1]}, "a", z * 1), {"k": 3.25, "more": u * 1}


def play(*args, **kwargs):
    """A call that must not leave C++."""
    return mixed._server._hot[0].play(*args, **kwargs)


@pytest.fixture(autouse=True, scope="module")
def tapes():
    for k in (2.0, 3.0, 4.0):
        for requires_grad in (True, False):
            args, _ = arguments(requires_grad=requires_grad)
            mixed(*args, k=k, more=args[2])


def test_the_result_has_the_structure_that_the_function_returns():
    args, kwargs = arguments()
    found, expected = play(*args, **kwargs), mixed.reference(*args, **kwargs)
    torch.testing.assert_close(found, expected)
    assert list(found) == list(expected)
    assert type(found["pair"]) is Pair
    assert found["pair"].b is args[0]["a"][0]
    assert found["pair"].a is found["all"][0] is found["all"][1] is found["more"]["held"]["total"]
    assert type(found["more"]) is Outputs
    assert list(found["more"]) == ["twice", "held"]
    assert list(found["more"]["held"].items()) == [("total", found["pair"].a), ("none", None)]


@pytest.mark.parametrize("requires_grad", [True, False])
def test_what_was_given_and_made_dies_with_the_result(requires_grad):
    args, kwargs = arguments(requires_grad=requires_grad)
    result = play(*args, **kwargs)
    tensors = [args[0]["a"][0], args[2], kwargs["more"], result["pair"].a]
    gone = [weakref.ref(tensor) for tensor in tensors]
    gc.disable()
    try:
        del args, kwargs, result, tensors
        assert [ref() for ref in gone] == [None] * 4
    finally:
        gc.enable()


def test_nothing_is_counted_twice():
    args, kwargs = arguments(requires_grad=False)
    word, key, number = "".join("a"), args[0]["a"], 3.0 + len(args)
    watched = [args, args[0], key, key[0], word, number, kwargs, Pair, mixed, None]
    play(args[0], word, args[2], k=number, more=kwargs["more"])
    before = [sys.getrefcount(value) for value in watched]
    for _ in range(500):
        play(args[0], word, args[2], k=number, more=kwargs["more"])
        play(args[0], word, args[2], k=True, more=kwargs["more"])  # is not taken
    after = [sys.getrefcount(value) for value in watched]
    assert all(abs(one - other) < 100 for one, other in zip(before, after, strict=True)), (before, after)


@pytest.mark.parametrize(
    "change",
    [
        lambda args, kwargs: kwargs.update(word="a"),
        lambda args, kwargs: args[0].update(c=[]),
        lambda args, kwargs: args[0].update(a=tuple(args[0]["a"])),
        lambda args, kwargs: args[0]["a"].append(None),
        lambda args, kwargs: args[0].update(a=args[0].pop("a")),
        lambda args, kwargs: kwargs.update(k=numpy_like()),
        lambda args, kwargs: kwargs.update(other=kwargs["more"]),
    ],
    ids=["given twice", "another key", "another container", "another length", "another order", "a subclass", "more"],
)
def test_what_does_not_fit_falls_through(change):
    args, kwargs = arguments()
    change(args, kwargs)
    assert play(*args, **kwargs) is NotImplemented


def numpy_like():
    return type("Number", (float,), {})(3.25)


def test_a_changed_argument_is_returned_and_keeps_its_history():
    for _ in range(3):
        found, expected = [], []
        for function, into in ((moved, found), (moved.reference, expected)):
            x, y = (torch.linspace(1, 2, 4, dtype=torch.float64).requires_grad_() for _ in range(2))
            changing = x * 2
            version = changing._version
            first, second = function(changing, y)
            assert first is changing
            assert changing._version > version
            into += [first, second, *torch.autograd.grad((first * second).sum(), (x, y), create_graph=True)]
            into += torch.autograd.grad(into[-1].square().sum(), (x, y))
        torch.testing.assert_close(found, expected)
    assert moved._server._hot is not None


@pytest.mark.parametrize(
    "target",
    [
        lambda: torch.ones(4, requires_grad=True),
        lambda: torch.nn.Parameter(torch.ones(4)),
        lambda: torch.ones(1).expand(4),
    ],
    ids=["a leaf", "a parameter", "one value for all"],
)
def test_what_torch_does_not_let_change_is_left_to_it(target):
    moved(torch.ones(4), torch.ones(4))
    moved(torch.ones(4), torch.ones(4))
    ours, theirs = target(), target()
    with pytest.raises(RuntimeError) as expected:
        moved.reference(theirs, torch.ones(4))
    with pytest.raises(RuntimeError) as found:
        moved(ours, torch.ones(4))
    assert str(found.value) == str(expected.value)
    assert torch.equal(ours, torch.ones(4))


def test_arguments_that_share_memory_are_left_to_the_reference():
    memory = torch.arange(8.0)
    expected = memory.clone()
    for _ in range(2):
        moved(torch.ones(4), torch.ones(4))
        assert moved.last_rung == "cpp"
        moved(memory[:4], memory[4:])
        assert moved.last_rung == "composed"
        moved.reference(expected[:4], expected[4:])
    assert torch.equal(memory, expected)


def test_threads_get_what_they_have_asked_for():
    failures = []

    def work(seed):
        torch.manual_seed(seed)
        for turn in range(60):
            args, kwargs = arguments(requires_grad=bool(turn % 2))
            kwargs["k"] = float(seed + turn)
            given = [*args[2:], *([args[2]] * (seed % 2))]
            found = mixed(args[0], "ab"[turn % 2], *given, **kwargs)
            expected = mixed.reference(args[0], "ab"[turn % 2], *given, **kwargs)
            if not torch.allclose(found["pair"].a, expected["pair"].a, rtol=1e-5, atol=1e-5):
                failures.append((seed, turn))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
