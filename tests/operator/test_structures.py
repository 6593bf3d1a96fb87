"""Parameters and results in lists, tuples, dicts and named tuples: values, gradients, identities as in eager."""

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map_only

import opwright
from tests.operator.against_eager import random, variants, weights
from tests.operator.structured_operators import (
    Layers,
    State,
    by_keyword,
    deep,
    either,
    given_back,
    joined,
    named,
    nested_results,
    optional_parts,
    ordered,
    pair,
    stepped,
    turned,
)
from tests.suite.nights import mostly_at_night

pytestmark = pytest.mark.built_together

X, Y, Z = (random(4, 4, seed=seed, dtype=torch.float64, gradient=False) for seed in (1, 2, 3))

CASES = {
    "list": (joined, ([X, Y, Z],), {}),
    "list of one": (joined, ([X],), {"scale": 3.0}),
    "tuple": (pair, ((X, Y),), {}),
    "same tensor twice": (pair, ((X, X),), {}),
    "sequence": (ordered, ([X, Y],), {}),
    "sequence that is a tuple": (ordered, ((X, Y, Z),), {}),
    "dict": (named, ({"a": X, "b": Y},), {}),
    "dict in another order": (named, ({"b": X, "a": Y},), {}),
    "named tuples": (stepped, (State(X, Y), Layers([Z, X], None)), {}),
    "named tuples with more": (stepped, (State(X, Y), Layers([Z], X[0])), {"steps": 3}),
    "nested": (deep, ({"leaves": [(X, 2.0), (Y, -1.0)]},), {}),
    "none in a list": (optional_parts, ([X, None, Y],), {}),
    "none left out": (optional_parts, ([None, Y], X), {}),
    "keyword only": (by_keyword, (X,), {"y": Y}),
    "keyword only with more": (by_keyword, (), {"power": 2, "y": Y, "x": X}),
    "constants": (turned, (X,), {}),
    "other constants": (turned, (X, (0, 1)), {"dtype": torch.float32}),
    "a list of integers": (turned, (X, [1, 0]), {}),
    "nothing or": (either, (X,), {}),
    "a number or": (either, (X, 2.0), {}),
    "a tensor or": (either, (X, Y), {}),
    "results": (nested_results, (X,), {}),
    "arguments returned": (given_back, (X, Y), {}),
}


BY_DAY = ("list", "same tensor twice", "dict", "named tuples with more", "none left out", "results")


def results_of(function, args, kwargs):
    """What it returns, and the gradients of both orders for every tensor among the arguments."""
    given = {}

    def leaf(tensor):
        return given.setdefault(id(tensor), tensor.detach().clone().requires_grad_())

    args, kwargs = tree_map_only(Tensor, leaf, (args, kwargs))
    returned = function(*args, **kwargs)
    values = [value for value in tree_leaves(returned) if isinstance(value, Tensor)]
    total = sum((weights(value, place).to(value.dtype) * value.sin()).sum() for place, value in enumerate(values))
    first = torch.autograd.grad(total, list(given.values()), create_graph=True, materialize_grads=True)
    second = torch.autograd.grad(
        sum((gradient * gradient).sum() for gradient in first), list(given.values()), materialize_grads=True
    )
    identities = [[left is right for left in values] for right in values + list(given.values())]
    return returned, (*first, *second), identities


@pytest.mark.parametrize(
    ("case", "rung"),
    [
        *mostly_at_night([(case, "cpp") for case in CASES], by_day=[(case, "cpp") for case in BY_DAY]),
        *mostly_at_night([(case, "function") for case in CASES], by_day=[("named tuples", "function")]),
    ],
)
def test_a_structure_is_as_in_eager(case, rung):
    operator, args, kwargs = CASES[case]
    expected, gradients, identities = results_of(operator.reference, args, kwargs)
    actual, found, same = results_of(operator if rung == "cpp" else operator.on(rung), args, kwargs)
    assert operator.last_rung == rung
    members, layout = tree_flatten(actual)
    wanted, right = tree_flatten(expected)
    assert layout == right
    for member, reference in zip(members, wanted, strict=True):
        assert type(member) is type(reference)
        if isinstance(member, Tensor):
            torch.testing.assert_close(member, reference)
            assert member.requires_grad == reference.requires_grad
        else:
            assert member == reference
    assert same == identities
    for gradient, reference in zip(found, gradients, strict=True):
        torch.testing.assert_close(gradient, reference)


def test_without_gradients_it_is_the_same():
    with torch.no_grad():
        torch.testing.assert_close(nested_results(X)["again"][0], X.sin())
        assert nested_results(X)["again"][1][0] is X
    assert nested_results.last_rung == "cpp"


def test_each_structure_has_a_kernel_and_sizes_have_none():
    @opwright.operator
    def total(parts: list[Tensor]) -> Tensor:
        return sum(torch.sin(part) for part in parts)

    for length in (3, 5, 8):
        for count in (1, 2, 3):
            parts = [random(length, seed=seed) for seed in range(count)]
            torch.testing.assert_close(total(parts), total.reference(parts))
            assert total.last_rung == "cpp"
    assert variants(total) == 3


def test_only_what_asks_for_a_gradient_gets_one():
    x, y = X.clone().requires_grad_(), Y.clone()
    joined([x, y]).sum().backward()
    assert y.grad is None
    torch.testing.assert_close(x.grad, 2 * X.cos())


def test_an_argument_that_is_returned_in_another_layout_is_the_references():
    @opwright.operator
    def dense(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.contiguous(), x * 2

    for x in (X, X.t(), X[:, ::2]):
        first, second = dense(x)
        assert first.is_contiguous()
        assert (first is x) == x.is_contiguous()
        torch.testing.assert_close(second, x * 2)


def appends(parts: list[Tensor]) -> Tensor:
    parts.append(parts[0] * 2)
    return parts[0] + 1


def replaces(parts: dict[str, Tensor]) -> Tensor:
    parts["x"] = parts["x"] * 2
    return parts["x"] + 1


@pytest.mark.falls_back
@pytest.mark.parametrize("reference", [appends, replaces])
def test_a_container_that_is_changed_is_the_callers(reference, told):
    operator = opwright.operator(reference)
    for _ in range(2):
        given, kept = ([X], [X]) if reference is appends else ({"x": X}, {"x": X})
        torch.testing.assert_close(operator(given), reference(kept))
        torch.testing.assert_close(given, kept)
    (line,) = told()
    assert "changes a list or dict that it is given" in line


@pytest.mark.parametrize(
    ("operator", "args", "schema"),
    [
        (joined, ([X, Y],), "opwright::joined(Tensor[] parts, float scale=2.) -> Tensor"),
        (by_keyword, None, "opwright::by_keyword(Tensor x, *, Tensor y, int power=3) -> Tensor"),
        (pair, None, None),
        (named, None, None),
    ],
)
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # which opcheck itself reads
def test_what_a_schema_can_spell_is_at_the_dispatcher(operator, args, schema):
    if schema is None:
        assert operator._signature.schema is None
        assert operator.overload is None
        return
    assert str(operator.overload._schema) == schema
    if args:
        torch.testing.assert_close(operator.overload(*args), operator.reference(*args))
        torch.library.opcheck(operator.overload, ([X.clone().requires_grad_(), Y],))


@pytest.mark.nightly
def test_samples_check_and_explain_reach_inside_of_containers():
    def samples(device, dtype):
        parts = [torch.arange(6.0).reshape(2, 3).to(device, dtype), torch.ones(2, 3, device=device, dtype=dtype)]
        yield opwright.Sample((parts,), name="two")

    operator = opwright.operator(samples=samples)(joined.reference)
    assert "parts_0" in operator.explain()
    assert "parts_0" in operator.source("cpp")
    assert operator.check().passed


@pytest.mark.parametrize("case", mostly_at_night(CASES, by_day=("list", "results", "other constants", *[*CASES][4::6])))
def test_tensors_without_data_get_the_strides_that_kernels_give(case):
    operator, args, kwargs = CASES[case]
    given = tree_map_only(Tensor, lambda tensor: tensor.t() if tensor.dim() == 2 else tensor, (args, kwargs))
    wanted = strides_of(operator(*given[0], **given[1]))
    args, kwargs = tree_map_only(Tensor, lambda tensor: tensor.to("meta"), given)
    assert strides_of(operator(*args, **kwargs)) == wanted
    with FakeTensorMode() as mode:
        args, kwargs = tree_map_only(Tensor, mode.from_tensor, given)
        assert strides_of(operator(*args, **kwargs)) == wanted


def strides_of(result):
    return [leaf.stride() for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]


def test_what_the_reference_returns_twice_is_one_tensor():
    x = X.t()
    result = nested_results(x)
    assert nested_results.last_rung == "composed"
    assert result["again"][0] is result["y"]
    assert result["again"][1][0] is x
    assert result["y"].stride() == x.stride()


def test_an_argument_without_data_is_given_back():
    x = torch.empty(4, 3, device="meta").t()
    result = nested_results(x)
    assert result["again"][1][0] is x
    assert result["y"].stride() == x.stride()


@pytest.mark.falls_back
def test_a_size_is_the_references():
    def sized(x: Tensor):
        return {"x": x + 1, "size": [torch.Size([2, 3])]}

    operator = opwright.operator(sized)
    for _ in range(2):
        assert type(operator(torch.ones(2))["size"][0]) is torch.Size
