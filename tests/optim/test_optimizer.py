"""What PyTorch asks of every optimizer."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest
import torch
from torch.optim.lr_scheduler import OneCycleLR, StepLR

import opwright.optim
from opwright.optim import ASGD, LAMB, SGD, AdamW, RMSprop
from tests.optim.trained import assert_same, parameters, train, trained
from tests.suite.nights import mostly_at_night

RATES = {"AdamW": {}, "SGD": {"momentum": 0.9}, "RMSprop": {"centered": True, "momentum": 0.5}, "NAdam": {}}
NAMES = sorted(RATES)


def ours(name: str) -> Any:
    return getattr(opwright.optim, name)


def theirs(name: str) -> Any:
    return getattr(torch.optim, name)


@pytest.mark.usefixtures("ranks")
@pytest.mark.parametrize("name", NAMES)
def test_resuming_is_exact(name: str) -> None:
    whole = trained(ours(name), 6, **RATES[name])
    first = ours(name)(parameters(), **RATES[name])
    train(first, 6)
    kept = io.BytesIO()
    train_again = ours(name)(parameters(), **RATES[name])
    train(train_again, 3)
    torch.save(train_again.state_dict(), kept)
    kept.seek(0)
    other = ours(name)([p.detach().clone().requires_grad_() for p in train_again.param_groups[0]["params"]])
    other.load_state_dict(torch.load(kept))
    assert_same(train(other, 3, seed=9), train(train_again, 3, seed=9))
    assert_same(first.param_groups[0]["params"], whole)


ALL = (*NAMES, "Adam", "Adamax", "RAdam", "Adagrad", "Adadelta", "Rprop", "ASGD", "Adafactor")


@pytest.mark.usefixtures("ranks")
@pytest.mark.parametrize("name", mostly_at_night(ALL, NAMES))
@pytest.mark.parametrize("ours_first", [True, False])
def test_a_state_dict_goes_to_torch_and_back(name: str, ours_first: bool) -> None:
    first, second = (ours(name), theirs(name)) if ours_first else (theirs(name), ours(name))
    hyper = RATES.get(name, {})
    begun = first(parameters(), **hyper)
    params = train(begun, 3)
    other = second([p.detach().clone().requires_grad_() for p in params], **hyper)
    other.load_state_dict(copy.deepcopy(begun.state_dict()))
    torch.testing.assert_close(train(other, 3, seed=8), train(begun, 3, seed=8))


@pytest.mark.usefixtures("ranks")
def test_states_are_under_their_names_beside_step() -> None:
    optimizer = AdamW(parameters())
    train(optimizer, 2)
    for param in optimizer.param_groups[0]["params"]:
        assert set(optimizer.state[param]) == {"step", "exp_avg", "exp_avg_sq"}
        assert optimizer.state[param]["step"] == 2


def test_groups_have_their_own_rates() -> None:
    def groups() -> list[dict[str, Any]]:
        one, two, *rest = parameters()
        return [
            {"params": [one], "lr": 0.5},
            {"params": [two], "weight_decay": 0.3, "maximize": True},
            {"params": rest},
        ]

    made, right = (train(cls(groups(), lr=0.1, momentum=0.9), 4) for cls in (SGD, torch.optim.SGD))
    torch.testing.assert_close(made, right)


def test_a_group_is_added_and_its_rates_are_refused() -> None:
    optimizer = SGD([parameters()[0]], lr=0.1)
    train(optimizer, 1)
    later = torch.ones(3, requires_grad=True)
    optimizer.add_param_group({"params": [later], "lr": 0.25})
    later.grad = torch.ones(3)
    optimizer.step()
    torch.testing.assert_close(later.detach(), torch.full((3,), 0.75))
    with pytest.raises(ValueError, match="Invalid learning rate: -1"):
        optimizer.add_param_group({"params": [torch.ones(2, requires_grad=True)], "lr": -1})
    assert len(optimizer.param_groups) == 2


def test_no_gradient_no_step() -> None:
    still, moving = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    optimizer = AdamW([still, moving])
    moving.grad = torch.ones(3)
    optimizer.step()
    assert torch.equal(still, torch.ones(3))
    assert still not in optimizer.state
    still.grad = torch.ones(3)
    optimizer.step()
    assert optimizer.state[still]["step"] == 1
    assert optimizer.state[moving]["step"] == 2
    right = torch.optim.AdamW([torch.ones(3, requires_grad=True)])
    right.param_groups[0]["params"][0].grad = torch.ones(3)
    right.step()
    torch.testing.assert_close(still, right.param_groups[0]["params"][0])


@pytest.mark.usefixtures("ranks")
def test_pickles_and_copies() -> None:
    optimizer = AdamW(parameters(), lr=0.01, max_grad_norm=1.0)
    train(optimizer, 2)
    for other in (pickle.loads(pickle.dumps(optimizer)), copy.deepcopy(optimizer)):
        assert_same(train(other, 2, seed=4), train(copy.deepcopy(optimizer), 2, seed=4))


def test_closures_hooks_and_zero_grad() -> None:
    param = torch.ones(3, requires_grad=True)
    optimizer = SGD([param], lr=0.5)
    met: list[str] = []
    optimizer.register_step_pre_hook(lambda *_: met.append("before"))
    optimizer.register_step_post_hook(lambda *_: met.append("after"))

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (param * param).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure) == 3
    assert met == ["before", "after"]
    assert torch.equal(param.detach(), torch.zeros(3))
    optimizer.zero_grad()
    assert param.grad is None


def test_the_profiler_sees_its_name() -> None:
    optimizer = SGD([torch.ones(3, requires_grad=True)])
    with torch.profiler.profile() as profile:
        optimizer.step()
    assert "Optimizer.step#SGD.step" in {event.name for event in profile.events()}


@pytest.mark.usefixtures("ranks")
@pytest.mark.parametrize("schedule", [
    lambda optimizer: StepLR(optimizer, 2, gamma=0.5),
    lambda optimizer: OneCycleLR(optimizer, 0.1, total_steps=10),
])  # fmt: skip
def test_schedulers(schedule: Any) -> None:
    def run(cls: type[torch.optim.Optimizer]) -> list[torch.Tensor]:
        optimizer = cls(parameters(), lr=0.05, betas=(0.9, 0.99))
        scheduler = schedule(optimizer)
        for seed in range(6):
            train(optimizer, 1, seed=seed)
            scheduler.step()
        return optimizer.param_groups[0]["params"]

    torch.testing.assert_close(run(AdamW), run(torch.optim.AdamW))


def test_named_parameters() -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = AdamW(model.named_parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]


def layouts() -> dict[str, torch.Tensor]:
    return {
        "transposed": torch.randn(5, 7).t(),
        "channels last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        "sliced": torch.randn(6, 8)[:, 1:5],
        "without dimensions": torch.randn(()),
        "of one": torch.randn(1, 4, 1),
        "empty": torch.randn(0, 3),
    }


@pytest.mark.parametrize("kind", sorted(layouts()))
@pytest.mark.parametrize("gradient_lies_otherwise", [False, True])
def test_layouts(kind: str, gradient_lies_otherwise: bool) -> None:
    torch.manual_seed(2)
    data = layouts()[kind]

    def run(cls: type[torch.optim.Optimizer]) -> torch.Tensor:
        param = data.clone(memory_format=torch.preserve_format)
        if kind == "sliced":
            param = torch.zeros(6, 8)[:, 1:5].copy_(data)
        param.requires_grad_()
        optimizer = cls([param], lr=0.1)
        for count in range(3):
            grad = torch.arange(data.numel(), dtype=torch.float32).reshape(data.shape) + count
            param.grad = grad if gradient_lies_otherwise else torch.empty_like(param).copy_(grad)
            optimizer.step()
        return param

    torch.testing.assert_close(run(AdamW), run(torch.optim.AdamW))


def test_an_empty_parameter_uses_up_no_kernels() -> None:
    empty, other = torch.zeros(0, 3, requires_grad=True), torch.ones(4, 3, requires_grad=True)
    optimizer = SGD([empty], lr=0.5)
    before = SGD.variants.built
    empty.grad = torch.zeros(0, 3)
    for _ in range(3):
        optimizer.step()
    assert optimizer.state[empty]["step"] == 3
    assert SGD.variants.built == before
    optimizer.add_param_group({"params": [other]})
    other.grad = torch.ones(4, 3)
    optimizer.step()
    assert torch.equal(other.detach(), torch.full((4, 3), 0.5))


def test_an_expanded_parameter_is_refused_in_pytorchs_words() -> None:
    param = torch.ones(1).expand(3).requires_grad_()
    param.grad = torch.ones(3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        SGD([param]).step()


def test_an_expanded_gradient() -> None:
    param = torch.ones(4, 3, requires_grad=True)
    param.sum().backward()
    param.grad = torch.ones(1).expand(4, 3)
    SGD([param], lr=0.5).step()
    assert torch.equal(param.detach(), torch.full((4, 3), 0.5))


def test_mixed_dtypes() -> None:
    params = [
        torch.ones(8, dtype=dtype, requires_grad=True) for dtype in (torch.float32, torch.float64, torch.bfloat16)
    ]
    optimizer = AdamW(params, lr=0.25, weight_decay=0.0)
    for param in params:
        param.grad = torch.ones_like(param)
    optimizer.step()
    for param in params:
        torch.testing.assert_close(param.detach(), torch.full_like(param, 0.75))


def test_tensors_that_share_memory_are_updated_one_after_the_other() -> None:
    def run(cls: type[torch.optim.Optimizer]) -> torch.Tensor:
        memory = torch.ones(6)
        params = [memory[:4].requires_grad_(), memory[2:].detach().requires_grad_()]
        optimizer = cls(params, lr=0.1, weight_decay=0.5)
        for param in params:
            param.grad = torch.ones_like(param)
        optimizer.step()
        return memory.detach()

    torch.testing.assert_close(run(SGD), run(torch.optim.SGD))


def test_memory_that_moves_is_found_again() -> None:
    param = torch.ones(5, 4, requires_grad=True)
    optimizer = SGD([param], lr=0.5, momentum=0.9)
    param.grad = torch.ones(5, 4)
    optimizer.step()
    param.data = torch.full((4, 5), 2.0).t()
    optimizer.state[param]["momentum_buffer"] = torch.zeros(5, 4)
    param.grad = torch.arange(20.0).reshape(5, 4)
    optimizer.step()
    torch.testing.assert_close(param.detach(), 2 - 0.5 * torch.arange(20.0).reshape(5, 4))


def test_autograd_sees_that_parameters_changed() -> None:
    param = torch.ones(3, requires_grad=True)
    loss = (param * param).sum()
    param.grad = torch.ones(3)
    SGD([param]).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")  # of torch.optim.Adagrad
@pytest.mark.parametrize("name", ["SGD", "Adagrad"])
def test_sparse_gradients(name: str) -> None:
    def run(cls: type[torch.optim.Optimizer]) -> torch.Tensor:
        torch.manual_seed(0)
        embedding = torch.nn.Embedding(6, 3, sparse=True)
        optimizer = cls(embedding.parameters(), lr=0.1)
        for rows in ([1, 1, 4], [0, 4]):
            optimizer.zero_grad()
            embedding(torch.tensor(rows)).square().sum().backward()
            optimizer.step()
        return embedding.weight

    torch.testing.assert_close(run(ours(name)), run(theirs(name)))


def test_sparse_gradients_are_refused_by_name() -> None:
    embedding = torch.nn.Embedding(6, 3, sparse=True)
    embedding(torch.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match="AdamW does not support sparse gradients"):
        AdamW(embedding.parameters()).step()


def test_under_modes_the_operations_run() -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    met = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            met.append(str(func))
            return func(*args, **(kwargs or {}))

    optimizer = SGD([torch.ones(3, requires_grad=True)], lr=0.5)
    param = optimizer.param_groups[0]["params"][0]
    param.grad = torch.ones(3)
    with Watch():
        optimizer.step()
    assert any("sub" in name for name in met)
    assert torch.equal(param.detach(), torch.full((3,), 0.5))


def test_under_compile() -> None:
    optimizer = SGD([torch.ones(3, requires_grad=True)], lr=0.5)
    param = optimizer.param_groups[0]["params"][0]
    param.grad = torch.ones(3)
    torch.compile(optimizer.step, backend="eager")()
    assert torch.equal(param.detach(), torch.full((3,), 0.5))


@pytest.mark.parametrize(("words", "make"), [
    ("Invalid learning rate: -1", lambda p: AdamW(p, lr=-1.0)),
    ("Invalid beta parameter at index 0: 1.0", lambda p: AdamW(p, betas=(1.0, 0.9))),
    ("Invalid epsilon value: -1e-08", lambda p: AdamW(p, eps=-1e-8)),
    ("Invalid momentum value: -0.5", lambda p: SGD(p, momentum=-0.5)),
    ("Nesterov momentum requires a momentum and zero dampening", lambda p: SGD(p, nesterov=True)),
    ("optimizer got an empty parameter list", lambda _: ASGD([])),
    ("Invalid rounding: 'up'", lambda p: AdamW(p, rounding="up")),
    ("AdamW has no state 'momentum'", lambda p: AdamW(p, state_dtype={"momentum": torch.bfloat16})),
    ("Invalid max_grad_norm value: -1", lambda p: LAMB(p, max_grad_norm=-1)),
])  # fmt: skip
def test_values_are_refused_as_torch_does(words: str, make: Any) -> None:
    with pytest.raises(ValueError, match=words):
        make(parameters())


def test_unknown_names_are_refused() -> None:
    with pytest.raises(TypeError, match=r"AdamW.__init__\(\) got an unexpected keyword argument 'momentum'"):
        AdamW(parameters(), momentum=0.9)
    with pytest.raises(TypeError, match="params argument given to the optimizer should be an iterable"):
        AdamW(torch.ones(3, requires_grad=True))


def test_a_state_dict_of_others_is_refused() -> None:
    optimizer = AdamW(parameters())
    train(optimizer, 1)
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        AdamW(parameters()[:2]).load_state_dict(optimizer.state_dict())
    other = AdamW([torch.ones(2, 2, requires_grad=True) for _ in range(4)])
    with pytest.raises(RuntimeError, match="size mismatch for exp_avg"):
        other.load_state_dict(optimizer.state_dict())


@pytest.mark.usefixtures("ranks")
def test_hyper_parameters_by_position() -> None:
    torch.testing.assert_close(trained(RMSprop, 3), list(trained(torch.optim.RMSprop, 3)))
    made, right = (cls(parameters(), 0.05, 0.9) for cls in (SGD, torch.optim.SGD))
    torch.testing.assert_close(train(made, 3), train(right, 3))


def test_other_strides_beside_sparse_gradients_are_noticed() -> None:
    table, weight = torch.ones(4, 2).requires_grad_(), torch.zeros(3, 3).requires_grad_()
    optimizer = opwright.optim.Adagrad([table, weight], lr=1.0)
    gradient = torch.arange(9.0).reshape(3, 3) - 4
    for given in (gradient, gradient.t()):
        table.grad, weight.grad = torch.ones(4, 2).to_sparse(), given
        before = weight.detach().clone()
        optimizer.step()
        assert torch.equal((weight.detach() - before).sign(), -given.sign())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch.jit, which torch.compile imports
@pytest.mark.parametrize("cls", [SGD, torch.optim.SGD])
def test_a_compiled_step_is_as_far_in_a_graph_as_that_of_torch(cls: Any) -> None:
    """Around a step, `torch.compile` breaks its graph, and with `fullgraph` refuses: for both."""

    def stepped(fullgraph: bool | None) -> torch.Tensor:
        param = torch.ones(3, requires_grad=True)
        param.grad = torch.full((3,), 2.0)
        optimizer = cls([param], lr=0.1)
        step = optimizer.step
        if fullgraph is not None:
            step = torch.compile(lambda: optimizer.step(), backend="eager", fullgraph=fullgraph)
        step()
        return param.detach()

    assert torch.equal(stepped(False), stepped(None))
    with pytest.raises(torch._dynamo.exc.Unsupported):
        stepped(True)


def test_states_of_adagrad_are_made_with_it() -> None:
    found = []
    for library in (opwright.optim, torch.optim):
        used, unused, later = (torch.ones(2, requires_grad=True) for _ in range(3))
        optimizer = library.Adagrad([used, unused], lr=0.1, initial_accumulator_value=1.0)
        optimizer.share_memory()
        assert optimizer.state[used]["sum"].is_shared()
        assert set(optimizer.state_dict()["state"]) == {0, 1}
        for state in optimizer.state.values():
            state["sum"].mul_(4)
        optimizer.param_groups[0]["initial_accumulator_value"] = 9.0
        optimizer.add_param_group({"params": [later], "initial_accumulator_value": 5.0})
        assert later not in optimizer.state
        for _ in range(2):
            used.grad = later.grad = torch.ones(2)
            optimizer.step()
        found.append([*optimizer.state_dict()["state"].values(), used, later])
    torch.testing.assert_close(*found)
