"""A module without kernels for all of it: its forward runs as written, and the modules inside are served."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import opwright
from tests.nn.against_plain import assert_same, compare, outcome

pytestmark = pytest.mark.falls_back


def _layers(size: int = 8) -> nn.Module:
    return nn.Sequential(nn.Linear(size, size), nn.Tanh())


class Branching(nn.Module):
    """Layers around a step that looks at values."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = _layers(), _layers()
        self.blocks = nn.ModuleList([self.first, _layers()])

    def forward(self, x: torch.Tensor, *, fails: bool = False) -> torch.Tensor:
        x = self.first(x)
        if fails:
            raise ValueError("it fails")
        if x.sum() > 1e9:
            return x
        for block in self.blocks:
            x = block(x)
        return self.second(x)


class Printing(nn.Module):
    """A forward with a side effect, and one that changes an attribute and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.calls = _layers(), 0
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        print("called")
        self.calls += 1
        self.seen = self.seen + 1
        return self.inner(x) * self.seen


class Transposing(nn.Module):
    """Results that lie in memory otherwise than row by row, before random draws, which go by that."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.drop, self.turn = _layers(), nn.Dropout(0.5), nn.Sequential(nn.Tanh(), nn.Flatten(1, 2))
        self.turned = Turned()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 1e9:
            return x
        x = self.drop(self.inner(x).T)
        return self.drop(self.turned(x)).reshape(8, -1)


class Turned(nn.Module):
    """A result that is not contiguous."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.exp() * 2).T


class InPlace(nn.Module):
    """What modules take is changed in place, where eager's backward pass does not read it; and a checkpoint."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = nn.Sigmoid(), nn.Sequential(nn.Tanh(), nn.Linear(8, 8)), _layers()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * 1 if x.sum() < 1e9 else x
        x += self.first(x)
        x += self.second(x)
        y = checkpoint(self.third, x, use_reentrant=False)
        return (y * 1).mul_(2).add_(x)


class Looking(nn.Module):
    """A forward that asks for the class of a module inside."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = _layers()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        print(end="")
        return self.inner(x) if type(self.inner) is nn.Sequential else x


class Keyed(nn.Module):
    """Modules inside as keys, and copied."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = _layers()
        self.scales, self.known = {self.inner: 2.0}, [self.inner]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        print(end="")
        assert self.inner in self.known
        assert type(copy.deepcopy(self.inner)) is nn.Sequential
        assert self.inner.__class__ is nn.Sequential
        return self.inner(x) * self.scales[self.inner]


MODULES = {
    "branch": Branching,
    "prints, counts": Printing,
    "layouts": Transposing,
    "in place": InPlace,
    "asks for types": Looking,
    "keys": Keyed,
}


@pytest.mark.parametrize("name", MODULES)
def test_steps_are_those_of_the_module(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    served = compare(MODULES[name](), [torch.randn(6, 8, requires_grad=True)], steps=3)
    assert served.last_rung == "composed"
    assert capsys.readouterr().out == "called\n" * (6 if name.startswith("prints") else 0)


def test_the_tree_tells_what_serves_each_module() -> None:
    torch.manual_seed(0)
    plain = Branching()
    before = [list(vars(each)) for each in plain.modules()]
    served, x = opwright.module(plain), torch.randn(6, 8, requires_grad=True)
    assert all(line.endswith(" not called yet") for line in served.explain().splitlines())
    served(x).sum().backward()
    served(x)
    text = served.explain()
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "first Sequential kernels: 1 forward, 1 backward" in lines
    assert "0 Linear in first" in lines
    assert "blocks ModuleList" in lines
    assert "its parts: " in lines[0]
    assert all(len(line) <= 100 for line in text.splitlines())
    assert repr(text) == text
    assert [list(vars(each)) for each in plain.modules()] == before
    assert type(plain.first) is type(served.first) is nn.Sequential
    served.eval()
    assert "not called yet" in served.explain().splitlines()[0]


def test_tensors_with_attributes_do_not_hide_how_results_lie() -> None:
    class Looking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.at = nn.Parameter(torch.randn(9, 3)), nn.Buffer(torch.arange(9), persistent=False)
            self.table.decays = False

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.table[self.at].view(3, 3, -1).permute(2, 0, 1).contiguous().unsqueeze(0) * x

    class Around(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.looking = Looking()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            print(end="")
            return self.looking(x).cos()

    served = compare(Around(), [torch.randn(1, requires_grad=True)])
    assert "looking Looking  kernels: " in served.explain()


def test_it_is_told_once_and_hooks_inside_run_with_their_module(told: Callable[[], list[str]]) -> None:
    plain = Branching()
    served, seen = opwright.module(plain), []
    handles = [
        plain.first.register_forward_hook(lambda module, *_: seen.append(module)),
        plain.second.register_full_backward_hook(lambda module, *_: seen.append(module)),
    ]
    for _ in range(2):
        served(torch.randn(6, 8)).sum().backward()
    assert list(map(id, seen)) == [*map(id, (plain.first, plain.first, plain.second))] * 2
    assert "first Sequential as written: it has hooks" in " ".join(served.explain().split())
    for handle in handles:
        handle.remove()
    served(torch.randn(6, 8))
    assert "kernels" in served.explain()
    texts = told()
    assert len(texts) == 2
    assert all("Branching falls back to its parts" in text for text in texts)


def test_errors_and_threads_and_copies() -> None:
    torch.manual_seed(0)
    plain = Branching()
    served, x = opwright.module(plain), torch.randn(6, 8)
    expected = plain(x)
    with pytest.raises(ValueError, match="it fails"):
        served(x, fails=True)
    found: list[torch.Tensor] = []
    threads = [threading.Thread(target=lambda: found.extend(served(x) for _ in range(9))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 27
    for copied in (copy.deepcopy(served), pickle.loads(pickle.dumps(served))):
        found.append(copied(x))
        assert copied.first is not plain.first
    for each in found:
        torch.testing.assert_close(each, expected)
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(served, backend="eager")(x), expected)
    with torch.autocast("cpu", torch.bfloat16):
        assert served(x).dtype is torch.bfloat16


class Scaling(nn.Module):
    """One small parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(3) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale


def test_more_tensors_than_a_kernel_takes() -> None:
    torch.manual_seed(0)
    plain = nn.Sequential(*[Scaling() for _ in range(65)])
    twin = copy.deepcopy(plain)
    served = opwright.module(twin)
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (plain, served)]
    for step in range(2):
        x = torch.randn(4, 3, requires_grad=True)
        assert_same(outcome(served, [x], {}, step), outcome(plain, [x], {}, step))
        for optimizer in optimizers:
            optimizer.step()
    lines = [" ".join(line.split()) for line in served.explain().splitlines()]
    served_by = [line for line in lines if "kernels:" in line]
    assert served_by == [f"{each}, in a row kernels: 1 forward, 1 backward" for each in ("0 to 31", "32 to 64")]
    served[3] = nn.Tanh()
    torch.testing.assert_close(served(x), twin(x), rtol=1e-4, atol=1e-5)


def test_a_class_that_changes_is_seen() -> None:
    served, x = opwright.module(Branching()), torch.randn(6, 8)
    served(x)
    nn.utils.parametrizations.weight_norm(served.blocks[1][0])
    torch.testing.assert_close(served(x), Branching.forward(served._written(), x))


class Counts(nn.Module):
    """A forward that changes what it reads."""

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.inner = 0, nn.Sequential(nn.Linear(4, 4), nn.Tanh())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.inner(x) * self.calls


@pytest.mark.falls_back
def test_a_module_whose_calls_change_it_tells_what_served_them() -> None:
    served = opwright.module(Counts())
    for calls in range(1, 4):
        x = torch.randn(2, 4)
        torch.testing.assert_close(served(x), torch.tanh(served.inner[0](x)) * calls)
    assert "not called" not in served.explain().splitlines()[0]


class Reaching(nn.Module):
    """Calls what is inside of a module that it does not call itself."""

    def __init__(self) -> None:
        super().__init__()
        self.outer = Branching()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.outer.first(x) if x.sum() < 1e9 else x


def test_the_tree_tells_what_serves_modules_inside_of_one_that_is_not_called() -> None:
    served = opwright.module(Reaching())
    served(torch.randn(2, 8))
    lines = [line.split(maxsplit=2) for line in str(served.explain()).splitlines() if len(line.split()) > 2]
    told = {name: text for name, _, text in lines if name in ("outer", "first", "second")}
    assert told["outer"] == "not called yet"
    assert told["first"].startswith("kernels: 1 forward")
    assert told["second"] == "not called yet"
