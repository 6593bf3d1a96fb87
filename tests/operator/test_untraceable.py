"""What cannot be traced: the reference serves, with gradients, and one sentence says why and where."""

import inspect

import numpy
import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad

import opwright
from opwright.errors import NoKernel, UntraceableReference
from opwright.samples import shapes

pytestmark = pytest.mark.falls_back


def branch(x: Tensor) -> Tensor:
    return x * 3 if x.sum() > 0 else x * x


def loop(x: Tensor) -> Tensor:
    while x.sum() < 100:
        x = x * x + 1
    return x


def nonzero(x: Tensor) -> Tensor:
    return x[torch.nonzero(x > 1)[:, 0]] * 2


def masked(x: Tensor) -> Tensor:
    return x[x > 1] * 2


def as_int(x: Tensor) -> Tensor:
    return x * int(x.max())


def as_item(x: Tensor) -> Tensor:
    return x * x.max().item()


def as_list(x: Tensor) -> Tensor:
    return x * sum(x.detach().tolist())


def as_array(x: Tensor) -> Tensor:
    return x * torch.from_numpy(numpy.sin(x.detach().numpy()))


def by_array_protocol(x: Tensor) -> Tensor:
    return x * float(numpy.asarray(x.detach()).sum())


def unique(x: Tensor) -> Tensor:
    return x * torch.unique(x).numel()


def as_text(x: Tensor) -> Tensor:
    return x * len(str(x.detach()))


def by_stride(x: Tensor) -> Tensor:
    return x * x.stride(0)


def by_contiguity(x: Tensor) -> Tensor:
    return x * 2 if x.is_contiguous() else x * 3


def by_order(x: Tensor) -> Tensor:
    return x * 2 if x.dim_order() == (0,) else x * 3


def by_conjugation(x: Tensor) -> Tensor:
    return x * 2 if torch.is_conj(x) else x * 3


def by_inference(x: Tensor) -> Tensor:
    return x * 2 if torch.is_inference(x) else x * 3


def by_gradient(x: Tensor) -> Tensor:
    return x * 2 if x.requires_grad else x * 3


VALUES = "looks at the values of a tensor"
SIZES = "depend on the values of a tensor"
ARRAY = "hands a tensor to NumPy, which cannot be traced"
CASES = [
    (branch, VALUES),
    (loop, VALUES),
    (nonzero, SIZES),
    (masked, SIZES),
    (as_int, VALUES),
    (as_item, VALUES),
    (as_list, VALUES),
    (as_array, ARRAY),
    (by_array_protocol, ARRAY),
    (unique, SIZES),
    (as_text, "writes a tensor as text"),
    (by_stride, "asks how a tensor lies in memory"),
    (by_contiguity, "asks how a tensor lies in memory"),
    (by_order, "asks how a tensor lies in memory"),
    (by_conjugation, "asks how a tensor lies in memory"),
    (by_inference, "asks what autograd knows of a tensor"),
    (by_gradient, "asks what autograd knows of a tensor"),
]


def inputs():
    yield torch.tensor([1.0, 2.0, 3.0])
    yield torch.tensor([-4.0, 5.0, -6.0, 1.5])
    yield torch.arange(8.0)[::2]


@pytest.mark.parametrize(("reference", "why"), CASES, ids=[case[0].__name__ for case in CASES])
@pytest.mark.parametrize("gradient", [False, True])
def test_the_reference_serves_and_says_once_why_and_where(reference, why, gradient, told):
    operator = opwright.operator(reference)
    for values in inputs():
        results = []
        for function in (operator, reference):
            x = values.detach().requires_grad_(gradient)
            y = function(x)
            results.append((y, *(torch.autograd.grad(y.sum(), x) if gradient else ())))
        for made, expected in zip(*results, strict=True):
            torch.testing.assert_close(made, expected, rtol=0, atol=0)
        assert operator.last_rung == "composed"
    (line,) = told()
    first = inspect.getsourcelines(reference)[1]
    assert line.startswith(f"opwright: {reference.__name__} falls back to your function: {__file__}:{first + 1}: ")
    assert why in line


def dual(function, x):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(function(forward_ad.make_dual(x, x.sin())))


TRANSFORMS = {
    "batches": lambda function, x: torch.vmap(function, in_dims=1)(x),
    "tangents": lambda function, x: torch.func.jvp(function, (x,), (x,)),
    "dual tensors": dual,
    "hessians": lambda function, x: torch.func.hessian(lambda x: function(x).square().sum())(x),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("reference", [by_contiguity, by_gradient, by_stride])
def test_questions_are_the_functions_under_transforms(reference, transform):
    x = torch.arange(6.0).reshape(2, 3).t().requires_grad_(transform == "dual tensors")
    found, expected = (TRANSFORMS[transform](f, x) for f in (opwright.operator(reference), reference))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("reference", [case[0] for case in CASES])
def test_a_pinned_rung_raises_instead(reference):
    with pytest.raises(UntraceableReference):
        opwright.operator(reference).on("cpp")(torch.ones(3))


def test_rungs_and_explain_tell_it():
    operator = opwright.operator(samples=shapes("N"))(branch)
    assert VALUES in next(rung for rung in operator.rungs() if rung.name == "cpp").reason
    assert VALUES in operator.explain()


def test_a_call_runs_the_reference_itself_once():
    operator = opwright.operator(fails_under_a_trace)
    x = torch.ones(3)
    for expected in (2.0, 3.0):
        torch.testing.assert_close(operator(x), torch.full((3,), expected))


def fails_under_a_trace(x: Tensor) -> Tensor:
    if isinstance(x.shape[0], torch.SymInt):
        raise TypeError("not a plain tensor")
    return x.add_(1).clone()


def test_what_a_trace_raises_is_told_with_its_place(told):
    operator = opwright.operator(fails_under_a_trace)
    operator(torch.ones(3))
    first = inspect.getsourcelines(fails_under_a_trace)[1]
    (said,) = told()
    assert f"{__file__}:{first + 2}: tracing it failed with TypeError: not a plain tensor" in said
    with pytest.raises(NoKernel, match="not a plain tensor"):
        operator.on("cpp")(torch.ones(3))


def test_what_is_assigned_to_data_counts(told):
    @opwright.operator
    def other_memory(x: Tensor) -> Tensor:
        y = torch.sin(x)
        y.data = torch.cos(x).data
        return y * 2

    x = torch.randn(3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(other_memory(x), torch.cos(x) * 2)
    assert "gives a tensor other memory, which a trace does not see" in told()[0]
