"""What torch refuses is refused by operators, too; and what it says of dtypes is known in a trace."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from opwright.api.operator import Operator
from opwright.errors import NoKernel
from opwright.tracing.interface.specs import TensorSpec
from opwright.tracing.trace import trace

D = torch.float64
Sum = Callable[[Tensor, Tensor], Tensor]
UNLIKE: dict[str, tuple[torch.dtype, Sum]] = {
    "True of floats": (torch.float32, lambda x, y: x.add(y, alpha=True)),
    "True of integers": (torch.int64, lambda x, y: x.sub(y, alpha=True)),
    "True in a number": (torch.float32, lambda x, y: torch.add(x, 2, alpha=True)),
    "True in place": (torch.float64, lambda x, y: x.clone().add_(y, alpha=True)),
    "a float of integers": (torch.int32, lambda x, y: torch.rsub(x, y, alpha=1.5)),
    "a complex number of floats": (torch.float32, lambda x, y: x.add(y, alpha=1j)),  # type: ignore[arg-type]
}


@pytest.mark.falls_back
@pytest.mark.parametrize("case", UNLIKE)
def test_factors_that_the_dtype_of_a_sum_lacks_raise(case: str) -> None:
    dtype, add = UNLIKE[case]

    def reference(x: Tensor, y: Tensor) -> Tensor:
        return add(x, y)

    given = torch.ones(3, dtype=dtype), torch.ones(3, dtype=dtype)
    with pytest.raises(NoKernel, match="alpha"):
        trace(reference, [TensorSpec("x", dtype, (3,)), TensorSpec("y", dtype, (3,))])
    with pytest.raises(RuntimeError) as expected:
        reference(*given)
    with pytest.raises(RuntimeError) as raised:
        Operator(reference, name="tests::unlike")(*given)
    assert str(raised.value) == str(expected.value)


def test_dtypes_that_the_function_asks_for_are_known() -> None:
    def reference(x: Tensor) -> Tensor:
        assert torch.promote_types(x.dtype, torch.float64) is torch.float64
        assert torch.result_type(x, 2.5) is torch.float32
        assert not torch.can_cast(x.dtype, torch.int32)
        return x * 2

    graph, _ = trace(reference, [TensorSpec("x", torch.float32, (3,))])
    assert len(graph.fx.nodes) == 2


@pytest.mark.falls_back
@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_results_of_mixed_dtypes_are_those_of_torchs_kernels(half: torch.dtype) -> None:
    def reference(x: Tensor, exponent: Tensor) -> Tensor:
        return torch.ldexp(x, exponent)

    operator = Operator(reference, name=f"tests::scaled_by_powers_{half}".replace(".", "_"))
    given = torch.tensor([1.5, 200.0], dtype=half), torch.tensor([2, 9])
    assert operator(*given).dtype is half
    assert torch.equal(operator(*given), reference(*given))
    alike = torch.tensor([1.5, 200.0]), torch.tensor([2, 9])
    assert torch.equal(operator(*alike), reference(*alike))
    assert operator.last_rung == "cpp"


NORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "layer": lambda x: functional.layer_norm(x, (4,)),
    "group": lambda x: functional.group_norm(x, 3),
    "batch": lambda x: functional.batch_norm(x, None, None, training=True),
}


@pytest.mark.falls_back
@pytest.mark.parametrize("dtype", [torch.int64, torch.complex64])
@pytest.mark.parametrize("norm", NORMS)
def test_norms_of_other_numbers_than_those_of_floating_point_raise(norm: str, dtype: torch.dtype) -> None:
    def reference(x: Tensor) -> Tensor:
        return NORMS[norm](x * 2) + 1

    given = torch.arange(24).reshape(2, 3, 4).to(dtype)
    with pytest.raises((RuntimeError, NotImplementedError)) as expected:
        reference(given)
    with pytest.raises(type(expected.value)) as raised:
        Operator(reference, name="tests::norm_of_others")(given)
    assert str(raised.value) == str(expected.value)


# Dtypes that PyTorch's kernels refuse, and fake tensors and decompositions take.
OTHER_DTYPES: dict[str, tuple[torch.dtype, Callable[[Tensor], Tensor]]] = {
    "a norm in integers": (torch.float32, lambda x: torch.linalg.vector_norm(x, dtype=torch.int8)),
    "a norm along rows in integers": (torch.bfloat16, lambda x: x.norm(2, -1, dtype=torch.int64)),
    "a norm in complex numbers": (torch.float32, lambda x: torch.norm(x, dtype=torch.complex64)),
    "a norm in real numbers": (torch.complex64, lambda x: torch.norm(x, dtype=torch.float32)),
    "a norm in a narrower dtype": (torch.float64, lambda x: torch.linalg.norm(x, dtype=torch.float16)),
    "weights of a wider dtype": (
        torch.float32,
        lambda x: functional.nll_loss(x, torch.tensor([0, 1]), weight=x[0].double()),
    ),
    "weights of truth values": (
        torch.float64,
        lambda x: functional.nll_loss(x, torch.tensor([0, 1]), weight=x[0].bool()),
    ),
    "weights of a cross entropy": (
        torch.bfloat16,
        lambda x: functional.cross_entropy(x, torch.tensor([0, 1]), weight=x[0].float()),
    ),
    "a range of truth values": (torch.float32, lambda x: torch.arange(0, 2, dtype=torch.bool) + x[0, 0]),
    "a range of complex numbers": (torch.float32, lambda x: torch.arange(3, dtype=torch.complex64) + x[0, 0]),
    "truth values at distances": (torch.float32, lambda x: torch.linspace(0, 1, 3, dtype=torch.bool) + x[0, 0]),
    "classes of int32": (torch.float32, lambda x: functional.one_hot(x.int() % 2, 4) + x[0, 0]),
    "indices of int32": (torch.float32, lambda x: torch.take(x, torch.tensor([0, 1], dtype=torch.int32))),
    "a gamma function of no dimension": (torch.float32, lambda x: torch.mvlgamma(x + 5, 0)),
    "a product into float64": (torch.float32, lambda x: torch.mm(x, x.mT, out=x.new_empty(2, 2, dtype=D))),
    "a triangle into float64": (torch.float32, lambda x: torch.tril(x, out=torch.empty_like(x, dtype=D))),
    "a choice into float64": (torch.float32, lambda x: torch.where(x > 0, x, x, out=torch.empty_like(x, dtype=D))),
    "sums into truth values": (torch.float32, lambda x: torch.cumsum(x, 0, out=torch.empty_like(x, dtype=torch.bool))),
    "powers at distances": (torch.float32, lambda x: torch.logspace(0, 1, 3, dtype=torch.bool) + x[0, 0]),
}


@pytest.mark.falls_back
@pytest.mark.parametrize("case", OTHER_DTYPES)
def test_dtypes_that_torchs_kernels_refuse_raise(case: str) -> None:
    dtype, function = OTHER_DTYPES[case]

    def reference(x: Tensor) -> Tensor:
        return function(x * 2) + 1

    given = torch.arange(8).reshape(2, 4).to(dtype)
    with pytest.raises((RuntimeError, NotImplementedError)) as expected:
        reference(given)
    with pytest.raises(type(expected.value)) as raised:
        Operator(reference, name="tests::other_dtypes")(given)
    assert str(raised.value) == str(expected.value)


TRUTH, TURNED = torch.tensor([True, False]), torch.tensor([1 + 1j, 2.0])
REFUSED: dict[str, tuple[Callable[[Tensor], object], Tensor]] = {
    "relu of truths": (functional.relu, TRUTH),
    "relu of complex numbers": (functional.relu, TURNED),
    "clamp of complex numbers": (lambda y: y.clamp(0, 1), TURNED),
    "floor of complex numbers": (torch.floor, TURNED),
    "extremes of complex numbers": (lambda y: y.max(0), TURNED),
    "order of complex numbers": (torch.sort, TURNED),
    "extremes so far of complex numbers": (lambda y: y.cummax(0), TURNED),
    "the largest of complex numbers": (lambda y: y.topk(1), TURNED),
    "the median of complex numbers": (lambda y: y.median(0), TURNED),
    "pooled truths": (lambda y: functional.max_pool1d(y[None, None], 2), TRUTH),
    "a decomposition of integers": (lambda y: torch.linalg.qr(y[None]), torch.tensor([1, 2])),
    "a mean of integers": (lambda y: y.mean(), torch.tensor([1, 2])),
}


@pytest.mark.falls_back
@pytest.mark.parametrize("case", REFUSED)
def test_dtypes_that_are_refused_raise_where_nobody_reads_the_result(case: str) -> None:
    compute, given = REFUSED[case]

    def unread(x: Tensor, y: Tensor) -> Tensor:
        compute(y)
        return x + 1

    x = torch.ones(2)
    with pytest.raises(RuntimeError if torch.__version__ < (2, 15) else (RuntimeError, TypeError)) as expected:
        unread(x, given)
    with pytest.raises(type(expected.value)) as raised:
        Operator(unread, name="tests::unread_dtypes")(x, given)
    assert str(raised.value) == str(expected.value)
