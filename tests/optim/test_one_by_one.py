"""Updates that look at rows, columns and products: kernels for each parameter, in one call for all."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

import opwright
import opwright.optim
from opwright.optim.base import DerivedOptimizer
from opwright.optim.serving.kernels import Variant
from opwright.toolchain.modules import module_of_text
from tests.optim.test_cuda import on_host
from tests.optim.trained import assert_same, parameters, train
from tests.suite.nights import mostly_at_night

SHAPES = ((7, 5), (3, 4), (130, 67), (1, 6), (6, 1), (200, 300), (33, 20))
"""Some are small enough to share the threads, one is not; the last one lies in memory column by column."""

ALONG = (
    "{0}.mean(-1, keepdim=True)", "{0}.sum(0, keepdim=True) / 50", "{0}.amax(1, keepdim=True)", "{0}.softmax(-1)",
    "{0}.square().mean(0)", "({0} @ {1}.mT @ {0}) / 500", "{0}.flip(0)", "{0}.norm(dim=1, keepdim=True) / 9",
    "{0}.logsumexp(0, keepdim=True)", "{0}.mean() + {1}.amin(0)",
)  # fmt: skip
ELEMENTS = ("{0} - {1}", "{0} * {1}", "{0} / (1 + {1}.abs())", "torch.tanh({0}) + {1}", "torch.maximum({0}, {1})")
NUMBERS = ("lr", "lr / (1 - 0.5**step)", "step * lr / 10", "min(lr, 1 / step**0.5)", "count * 0.1")


def update_of(seed: int) -> str:
    """The text of an update with a state of its rows, and one that is a number."""
    draw = random.Random(seed)
    elements, lines = ["param", "grad"], []
    for number in range(draw.randint(2, 4)):
        along = draw.choice(ALONG).format(draw.choice(elements), draw.choice(elements))
        lines.append(f"along_{number} = {along}")
        lines.append(f"value_{number} = {draw.choice(ELEMENTS).format(draw.choice(elements), f'along_{number}')}")
        elements.append(f"value_{number}")
    lines.append(f"rows = 0.5 * rows + 0.1 * torch.tanh({draw.choice(elements)}).mean(-1, keepdim=True)")
    lines.append(f"average = 0.5 * average + 0.1 * torch.tanh({draw.choice(elements)}) * rows")
    lines.append(f"count = count + {draw.choice(('1', 'lr', 'step'))}")
    rate = draw.choice(NUMBERS)
    lines.append(f"return param - {rate} * torch.tanh({elements[-1]}) / (1 + rows.abs()), rows, average, count")
    body = "\n    ".join(lines)
    return f"import torch\n\ndef Update(param, grad, rows, average, count, step, *, lr=0.1):\n    {body}\n"


def optimizer_of(text: str, name: str) -> type[DerivedOptimizer]:
    states = {"rows": lambda param, **_: param.new_zeros(*param.shape[:-1], 1), "average": None,
              "count": lambda param, **_: torch.zeros((), dtype=torch.float64)}  # fmt: skip
    return opwright.optimizer(state=states)(module_of_text(name, text).Update)


def some_parameters(dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    *others, last = parameters(SHAPES, dtype)
    return [*others, last.detach().T.contiguous().T.requires_grad_()]


def variants(cls: type[DerivedOptimizer]) -> list[Variant]:
    return [variant for _, found in cls.variants.all() for variant in found]


@pytest.mark.parametrize("seed", mostly_at_night(range(60), 1))
def test_updates_are_their_definitions(seed: int, no_definition: None) -> None:
    text = update_of(seed)
    made = optimizer_of(text, f"<along {seed}>")
    for cls in (made, on_host(made)):
        params, exact = some_parameters(), [param.detach().double() for param in some_parameters()]
        optimizer, states = cls(params), None
        for step in range(1, 4):
            grads = [torch.randn(p.shape, generator=torch.Generator().manual_seed(step)) for p in params]
            for param, grad in zip(params, grads, strict=True):
                param.grad = grad
            optimizer.step()
            exact, states = made.functional(exact, [grad.double() for grad in grads], states, float(step))
        for param, right in zip(params, exact, strict=True):
            torch.testing.assert_close(
                param.detach().double(), right, rtol=1e-4, atol=1e-4, msg=lambda m: f"{text}\n{m}"
            )
        assert any(v.one_by_one for v in variants(cls)), text


def along_rows(param: Any, grad: Any, average: Any, step: Any, *, lr: float = 0.1) -> Any:
    average = 0.5 * average + grad / (1e-3 + grad.norm(dim=-1, keepdim=True))
    return param - lr / (1 - 0.5**step) * average, average


def by_columns(param: Any, grad: Any, average: Any, step: Any, *, lr: float = 0.1) -> Any:
    average = 0.5 * average + grad
    scale = average.abs().amax(0)
    return param - lr * (average + grad) / (1 + scale), average


def branches(param: Any, grad: Any, step: Any, *, lr: float = 0.1) -> Any:
    scaled = grad / (1 + grad.abs().amax(-1, keepdim=True))
    return (param - lr * scaled if lr > 0.05 else param + scaled,)


def raises_late(param: Any, grad: Any, step: Any, *, lr: float = 0.1) -> Any:
    return (param - 1 / (3 - step) * grad.softmax(-1) * lr,)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    cls, found = opwright.optimizer(state=("average",))(along_rows), []
    threads = torch.get_num_threads()
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            found.append(train(cls([*some_parameters(), *parameters([(9, 8)] * 40)]), 3))
    finally:
        torch.set_num_threads(threads)
    for each in found[1:]:
        assert_same(each, found[0])


@pytest.mark.parametrize("there", [lambda cls: cls, on_host])
def test_each_group_goes_its_own_way(there: Callable[[Any], Any], no_definition: None) -> None:
    """No kernel serves all: each leaves the parameters alone that it is not valid for."""
    cls = there(opwright.optimizer()(branches))
    params = parameters([(5, 4)] * 6)
    optimizer = cls([{"params": params[::2], "lr": 0.1}, {"params": params[1::2], "lr": 0.01}])
    right = [param.detach().clone() for param in params]
    for step in (1.0, 2.0):
        train(optimizer, 1, seed=int(step))
        for position, param in enumerate(params):
            right[position] = branches(right[position], param.grad, step, lr=0.01 if position % 2 else 0.1)[0]
    torch.testing.assert_close([param.detach() for param in params], right)
    assert len(variants(cls)) == 2


def test_what_python_raises_changes_nothing() -> None:
    cls = opwright.optimizer()(raises_late)
    optimizer = cls(parameters([(4, 3), (5, 2)]))
    params = train(optimizer, 2)
    before = [param.detach().clone() for param in params]
    with pytest.raises(ZeroDivisionError):
        optimizer.step()
    assert_same(params, before)
    assert {int(state["step"]) for state in optimizer.state.values()} == {2}


def test_new_values_take_the_place_of_the_old_ones() -> None:
    """Where each is computed of the old one at the same place, and nothing reads another argument afterwards."""
    cls = opwright.optimizer(state=("average",))(by_columns)
    params = train(cls(parameters([(5, 4), (40, 30)])), 2)
    (variant,) = variants(cls)
    assert "Tensor new_param = in_memory_of(param" in variant.text
    assert "in_memory_of(average" not in variant.text  # the gradient is read after that
    assert_same(params, train(on_host(cls)(parameters([(5, 4), (40, 30)])), 2))


def by_first_column(param: Any, grad: Any, average: Any, step: Any, *, lr: float = 0.1) -> Any:
    average = 0.5 * average + grad
    return param - lr * grad[:, :1] * grad / (1 + average.abs().amax(0)), average


@pytest.mark.parametrize("function", [by_columns, by_first_column])
def test_a_gradient_may_lie_in_the_memory_of_its_parameter(function: Callable[..., Any]) -> None:
    cls = opwright.optimizer(state=("average",))(function)
    (param,) = parameters([(5, 4)])
    param.grad, before = param.detach(), param.detach().clone()
    cls([param]).step()
    right, _ = function(before, before, torch.zeros(5, 4), 1.0)
    torch.testing.assert_close(param.detach(), right)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_rounding_at_random_is_unbiased_and_can_be_repeated(dtype: torch.dtype) -> None:
    def steps(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        (param,) = params = parameters([(100, 1000)], dtype)
        param.detach().fill_(1.0)
        param.grad = torch.ones_like(param)
        cls = opwright.optimizer(state=("average",))(along_rows)
        cls(params, lr=0.001, rounding="stochastic", state_dtype=torch.float32).step()
        return param.detach().double()

    first, again, other = steps(1), steps(1), steps(2)
    assert_same([first], [again])
    assert (first != other).any()
    exact = 1 - 0.001 / (1 - 0.5) / (1e-3 + 1000**0.5)
    assert first.unique().numel() == 2
    error = first.std() / first.numel() ** 0.5
    assert abs(first.mean() - exact) < 4 * error


@pytest.mark.falls_back
def test_rounding_at_random_on_a_gpu_is_left_to_the_definition() -> None:
    cls = on_host(opwright.optimizer(state=("average",))(along_rows))
    optimizer = cls(parameters([(5, 4)], torch.bfloat16), rounding="stochastic")
    train(optimizer, 1)
    assert not variants(cls)


@pytest.mark.parametrize(("name", "shapes"), mostly_at_night([
    ("Adafactor", SHAPES), ("Muon", SHAPES[:4]), ("Adafactor", ((4, 5, 6), (2, 3, 4, 5), (9,), ())),
], 2))  # fmt: skip
def test_ready_ones_are_their_definitions(
    name: str, shapes: Sequence[tuple[int, ...]], no_definition: None
) -> None:  # fmt: skip
    cls = getattr(opwright.optim, name)
    ours = train(cls(parameters(shapes)), 4)
    exact, states = [param.detach().double() for param in parameters(shapes)], None
    generator = torch.Generator().manual_seed(5)
    for step in range(1, 5):
        grads = [torch.randn(p.shape, generator=generator, dtype=torch.float64) for p in exact]
        exact, states = cls.functional(exact, [grad.float().double() for grad in grads], states, float(step))
    tolerance = 5e-3 if name == "Muon" else 1e-5  # it iterates in bfloat16
    for param, right in zip(ours, exact, strict=True):
        torch.testing.assert_close(param.detach().double(), right, rtol=tolerance, atol=tolerance)


def inverts(param: Any, grad: Any, step: Any, *, lr: float = 0.1) -> Any:
    return (param - lr * torch.linalg.inv(grad) / (1 + grad.abs().amax(0)),)


def test_what_fails_for_the_values_of_a_tensor_raises_as_in_python_and_leaves_it_alone() -> None:
    cls = opwright.optimizer()(inverts)
    params = parameters([(4, 4)] * 3)
    optimizer = cls(params)
    for count in range(12):  # more often than an update may have ways
        before = [param.detach().clone() for param in params]
        grads = [torch.randn(4, 4, generator=torch.Generator().manual_seed(count)) for _ in params]
        grads[1].fill_(0.0)
        for param, grad in zip(params, grads, strict=True):
            param.grad = grad
        with pytest.raises(torch.linalg.LinAlgError):
            optimizer.step()
        for position in (0, 2):
            torch.testing.assert_close(params[position], inverts(before[position], grads[position], count + 1.0)[0])
        assert_same([params[1]], [before[1]])
        assert [int(optimizer.state[param]["step"]) for param in params] == [count + 1, 0, count + 1]
    assert len(variants(cls)) == 1


def grows(param: Any, grad: Any, distance: Any, step: Any, *, lr: float = 0.1) -> Any:
    distance = distance + grad.norm()
    return param - lr * distance * grad, distance


@pytest.mark.parametrize("there", [lambda cls: cls, pytest.param(on_host, marks=pytest.mark.falls_back)])
def test_a_number_that_is_computed_of_a_tensor(there: Callable[[Any], Any]) -> None:
    """As in Prodigy and D-Adaptation."""
    cls = there(opwright.optimizer(state={"distance": lambda param, **_: torch.zeros(())})(grows))
    params = parameters([(5, 4), (3, 3)])
    optimizer, exact, states = cls(params), [param.detach().clone() for param in params], None
    train(optimizer, 1)
    exact, states = cls.functional(exact, [param.grad for param in params], states, 1.0)
    for param, right, state in zip(params, exact, states, strict=True):
        torch.testing.assert_close(param.detach(), right)
        torch.testing.assert_close(optimizer.state[param]["distance"], state["distance"])
    assert bool(variants(cls)) == (there is not on_host)


def counts_rows(param: Any, grad: Any, count: Any, step: Any, *, lr: float = 0.1) -> Any:
    return param - lr * grad.softmax(-1), count.double() + 1


def counts(param: Any, grad: Any, count: Any, step: Any, *, lr: float = 0.1) -> Any:
    return param - lr * grad, count.double() + 1


@pytest.mark.parametrize("function", [counts_rows, counts])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_wider_number_is_stored_in_its_dtype(function: Callable[..., Any], dtype: torch.dtype) -> None:
    both = torch.zeros(2, dtype=dtype)
    cls = opwright.optimizer(state={"count": lambda param, **_: both[0]})(function)
    train(cls(parameters([(5, 4)], torch.bfloat16), rounding="stochastic"), 3)
    assert both.tolist() == [3, 0]
    assert variants(cls)


def of_no_dimension(param: Any, grad: Any, average: Any, step: Any, *, lr: float = 0.1) -> Any:
    new = param - lr * grad
    square = torch.full((3, 3), 1.0) * param
    return new, 0.1 * average + (square @ square).mean() * param + 0 * new


def constant(param: Any, grad: Any, average: Any, step: Any, *, lr: float = 0.1) -> Any:
    return torch.full_like(param, lr), torch.full_like(average, 3.0) * step


@pytest.mark.parametrize("function", [of_no_dimension, constant])
@pytest.mark.parametrize("there", [lambda cls: cls, on_host])
def test_parameters_without_dimensions(
    function: Callable[..., Any], there: Callable[[Any], Any], no_definition: None
) -> None:  # fmt: skip
    cls = there(opwright.optimizer(state=("average",))(function))
    params = parameters([(), ()])
    optimizer, exact, states = cls(params), [param.detach().clone() for param in params], None
    for step in range(1, 4):
        train(optimizer, 1, seed=step)
        exact, states = cls.functional(exact, [param.grad for param in params], states, float(step))
    for param, right, state in zip(params, exact, states, strict=True):
        torch.testing.assert_close(param.detach(), right)
        torch.testing.assert_close(optimizer.state[param]["average"], state["average"])
    assert all("numbers.new_average" not in variant.text for variant in variants(cls))  # it may lie on a GPU


@pytest.mark.parametrize("options", [{"state_dtype": torch.float64}, {"master": True, "state_dtype": torch.float64}])
def test_rounding_at_random_beside_wider_states(options: dict[str, Any], no_definition: None) -> None:
    dtype = torch.bfloat16 if "master" in options else torch.float32
    cls = opwright.optimizer(state=("average",))(along_rows)
    (ours,) = train(cls(parameters([(30, 20)], dtype), rounding="stochastic", **options), 3)
    (right,) = train(cls(parameters([(30, 20)], dtype), **options), 3)
    torch.testing.assert_close(ours, right, rtol=2**-7 if dtype is torch.bfloat16 else 1e-6, atol=1e-6)


def Numbers(param: Any, grad: Any, step: Any, *, lr: float = 0.1) -> Any:
    return (param - lr * grad.softmax(-1),)


def Given(param: Any, grad: Any, step: Any, *, lr: float = 0.1) -> Any:
    return (param - lr * grad.softmax(-1),)


@pytest.mark.parametrize("function", [Numbers, Given])
def test_an_update_may_be_called_as_what_functions_take(function: Callable[..., Any], no_definition: None) -> None:
    train(opwright.optimizer()(function)(parameters([(5, 4)])), 1)


@pytest.mark.falls_back
def test_a_state_whose_elements_share_memory_is_refused_as_pytorch_does() -> None:
    cls = opwright.optimizer(state=("average",))(along_rows)
    optimizer = cls(params := parameters([(5, 4)]))
    train(optimizer, 1)
    optimizer.state[params[0]]["average"] = torch.zeros(4).expand(5, 4)
    with pytest.raises(RuntimeError, match="single memory location"):
        train(optimizer, 1)


def detached(param: Any, grad: Any, before: Any, step: Any, *, lr: float = 0.1) -> Any:
    return param - lr * grad, param.detach()


def seen_otherwise(param: Any, grad: Any, before: Any, step: Any, *, lr: float = 0.1) -> Any:
    return param - lr * grad.softmax(-1), param.t()


def exchanged(param: Any, grad: Any, before: Any, step: Any, *, lr: float = 0.1) -> Any:
    return before - lr * grad, param.view_as(param)


def turned(param: Any, grad: Any, before: Any, step: Any, *, lr: float = 0.1) -> Any:
    product = before @ grad
    other = param.mT
    return param - lr * product, product @ other


def multiplied(param: Any, grad: Any, before: Any, step: Any, *, lr: float = 0.1) -> Any:
    turned = param.t()
    new = param - lr * grad
    return new, before + (new @ turned) / 10


@pytest.mark.parametrize("function", mostly_at_night([detached, turned, multiplied, seen_otherwise, exchanged], 3))
@pytest.mark.parametrize("there", [lambda cls: cls, on_host])
def test_results_that_share_memory_with_arguments(function: Callable[..., Any], there: Callable[[Any], Any]) -> None:
    """Results are stored one after the other: storing the new parameter changes none that is a view of the old one."""
    cls = there(opwright.optimizer(state=("before",))(function))
    params = parameters([(4, 4), (6, 6)])
    optimizer, exact = cls(params), [param.detach().clone() for param in params]
    states: Any = None
    for step in range(1, 4):
        grads = [torch.randn(p.shape, generator=torch.Generator().manual_seed(step)) for p in params]
        for param, grad in zip(params, grads, strict=True):
            param.grad = grad
        optimizer.step()
        exact, states = cls.functional(exact, grads, states, float(step))
    for param, right, state in zip(params, exact, states, strict=True):
        torch.testing.assert_close(param.detach(), right)
        torch.testing.assert_close(optimizer.state[param]["before"], state["before"])


def test_functions_are_those_of_one_source() -> None:
    """Packages link many sources into one library, whose structs have the same names."""
    cls = opwright.optimizer(state=("average",))(along_rows)
    train(cls(parameters([(5, 4)])), 1)
    (variant,) = variants(cls)
    before, opening, behind = variant.text.partition("namespace opwright::emitted {\nnamespace {\n")
    assert opening
    assert "struct " not in before
    assert "struct " not in behind.partition("}  // namespace\n")[2]


@pytest.mark.parametrize("name", mostly_at_night(["Const", "New", "_1"], 1))
def test_names_that_mean_something_in_cpp(name: str) -> None:
    def update(param: Any, grad: Any, step: Any, *, lr: float = 0.1) -> Any:
        return param - lr * grad.cumsum(0)

    update.__name__ = update.__qualname__ = name
    cls = opwright.optimizer(state=())(update)
    (param,) = parameters([(4,)])
    before = param.detach().clone()
    train(cls([param]), 1)
    torch.testing.assert_close(param.detach(), before - 0.1 * param.grad.cumsum(0))
    assert variants(cls)
