"""Every kind of kernel as CUDA: NVRTC compiles it, and on the processor it gives what eager gives, gradients too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from opwright.api.operator import Operator
from opwright.checking.accuracy import Comparison
from opwright.checking.finding import Fault
from opwright.operators.stages import derive
from opwright.settings import Settings
from tests.cuda_on_host import ARCHITECTURES, cuda_kernels, machine_code, settings_on_host
from tests.derived import specs_of
from tests.suite.nights import mostly_at_night


def element_wise(x: Tensor, half: Tensor, count: Tensor, mask: Tensor, z: Tensor) -> tuple[Tensor, ...]:
    """Every class of dtypes, in one kernel where they have one shape."""
    return torch.tanh(x) * half, torch.where(mask, x, -x), count * 3 + (x > 0), z * z.conj() + x, ~mask


def broadcast(x: Tensor, row: Tensor, column: Tensor, number: Tensor) -> Tensor:
    return torch.sin(x * row + column) * number


def pieces(x: Tensor, y: Tensor) -> Tensor:
    """Stores piece by piece, a reversed axis, neighbours that are apart."""
    return torch.cat([x.flip(-1)[:, ::2], y.mT[:, 1:], torch.exp(x[:, :1])], -1)


def counted(x: Tensor) -> tuple[Tensor, Tensor]:
    positions = torch.arange(x.shape[-1]) * 3 + 1
    return x * positions, torch.tril(x)


def rows(x: Tensor) -> tuple[Tensor, ...]:
    """Several passes, and values that are the same for a whole row."""
    return torch.softmax(x, -1), torch.logsumexp(x, -1), x.std(-1), (x == x.amax(-1, keepdim=True)).to(x.dtype) * x


def one_pass(x: Tensor, count: Tensor) -> tuple[Tensor, ...]:
    return x.prod(-1), x.amin(-1), count.sum(-1), count.amax(-1), (count > 2).any(-1), (x > -9).all(-1)


def normalized(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Its gradient reduces rows, and columns with what rows have reduced to."""
    return functional.layer_norm(x, x.shape[-1:], weight, bias)


def in_groups(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Rows over several axes, one of them a part of a dimension."""
    return functional.silu(functional.group_norm(x, 4, weight, bias))


def columns(x: Tensor, count: Tensor) -> tuple[Tensor, ...]:
    return x.sum(0), x.amax(1), (1 + x / 64).prod(0), count.sum(0), (count > 4).any(0), x * 2 + x.mean((0, 1))


def everything(x: Tensor) -> tuple[Tensor, ...]:
    """One row is all there is: its pieces are put together by a second launch."""
    return x.mean(), x.amax(), (x > 3).any()


def between_calls(x: Tensor, weight: Tensor) -> Tensor:
    """Kernels before, between and after library operations, one of which draws random numbers."""
    return torch.relu((x * 2) @ weight) * (torch.rand_like(x @ weight) < 0.5)


def short(x: Tensor) -> Tensor:
    return x / x.norm(dim=-1, keepdim=True) + x.sum(-1, keepdim=True)


def numbers(x: Tensor, scale: float, power: int) -> Tensor:
    return scale * x**power / x.shape[0]


def _real(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)), dtype=dtype).requires_grad_()


def _count(*shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
    return torch.randint(0, 6, shape, generator=torch.Generator().manual_seed(1)).to(dtype)


BF16, F16, F64, C64 = torch.bfloat16, torch.float16, torch.float64, torch.complex64

CASES: dict[str, tuple[Callable[..., Any], Sequence[Sequence[Any]]]] = {
    "element_wise": (
        element_wise,
        [
            [_real(5, 36), _real(5, 36, dtype=BF16), _count(5, 36), _count(5, 36) > 2, _real(5, 36, dtype=C64)],
            [_real(3, 7), _real(7, 3, dtype=BF16).mT, _count(3, 7), _count(7, 3).mT > 2, _real(3, 7, dtype=C64)],
        ],
    ),
    "small_integers": (
        element_wise,
        [[_real(9, dtype=F16), _real(9), _count(9, dtype=torch.uint8), _count(9) > 2, _real(9, dtype=C64)]],
    ),
    "broadcast": (
        broadcast,
        [[_real(2, n, m), _real(m), _real(n, 1), _real()] for n, m in ((3, 9),)],
    ),
    "pieces": (pieces, [[_real(6, 8), _real(9, 6)]]),
    "counted": (counted, [[_real(6, 10)]]),
    "rows": (rows, [[_real(*shape)] for shape in ((7, 3), (5, 40), (5, 201), (3, 2500), (2, 9001))]),
    "half_rows": (rows, [[_real(*shape, dtype=BF16)] for shape in ((7, 8), (2, 4099), (3, 2048))]),
    "double_rows": (rows, [[_real(4, 66, dtype=F64)], [_real(66, 4, dtype=F64).mT]]),
    "one_pass": (one_pass, [[_real(5, 12), _count(5, 12)], [_real(300, 2), _count(300, 2, dtype=torch.int64)]]),
    "normalized": (normalized, [[_real(n, m), _real(m), _real(m)] for n, m in ((3, 8), (300, 12), (40, 257))]),
    "in_groups": (in_groups, [[_real(n, 8, *m), _real(8), _real(8)] for n, m in ((3, (5, 6)), (2, (33, 40)))]),
    "columns": (columns, [[_real(3, 5, 8), _count(3, 5, 8)], [_real(300, 2, 9), _count(300, 2, 9)]]),
    "half_columns": (columns, [[_real(200, 3, 16, dtype=F16), _count(200, 3, 16)]]),
    "everything": (everything, [[_real(4, 6)], [_real(90, 101)]]),
    "much": (everything, [[_real(300, 101, dtype=F64)]]),
    "between_calls": (between_calls, [[_real(4, 6), _real(6, 5)]]),
    "short": (short, [[_real(50, 3)], [_real(5, 40)]]),
    "numbers": (numbers, [[_real(5, 6), 0.5, 3]]),
}  # fmt: skip
# What the others have too, in another dtype or another size.
AT_NIGHT = {
    *("small_integers", "half_rows", "double_rows", "half_columns", "columns", "broadcast"),
    *("much", "short", "numbers", "one_pass", "in_groups", "normalized", "counted"),
}

ALL = [(name, len(calls)) for name, (_, calls) in CASES.items()]
BY_DAY = [("element_wise", 1), *(case for case in ALL if case[0] not in {*AT_NIGHT, "element_wise"})]
"""Cases, and how many of their calls; elements that lie otherwise are in `pieces` too."""

COMPILED_BY_DAY = {"element_wise", "normalized"}
"""Of those that run by day, what NVRTC compiles too; at night it compiles all, for every architecture."""


def seeded(function: Callable[..., Any]) -> Callable[..., Sequence[Tensor]]:
    """The same random numbers each time; always a sequence of results."""

    def run(*arguments: Any) -> Sequence[Tensor]:
        torch.manual_seed(0)
        returned = function(*arguments)
        return (returned,) if isinstance(returned, Tensor) else returned

    return run


def results(function: Callable[..., Any], arguments: Sequence[Any], exactly: bool = False) -> list[Tensor]:
    """Outputs and gradients; `exactly` with float64 in place of float32 and half types."""
    given = [argument.detach() if isinstance(argument, Tensor) else argument for argument in arguments]
    if exactly:
        given = [a.double() if isinstance(a, Tensor) and a.is_floating_point() else a for a in given]
    for argument, original in zip(given, arguments, strict=True):
        if isinstance(argument, Tensor):
            argument.requires_grad_(original.requires_grad)
    outputs = seeded(function)(*given)
    differentiable = [output for output in outputs if output.requires_grad]
    cotangents = [torch.linspace(0.5, 1.5, o.numel()).reshape(o.shape).to(o.dtype) for o in differentiable]
    wanted = [argument for argument in given if isinstance(argument, Tensor) and argument.requires_grad]
    gradients = torch.autograd.grad(differentiable, wanted, cotangents) if differentiable else ()
    return [tensor.detach() for tensor in (*outputs, *gradients)]


def assert_as_exact_as_eager(operator: Operator, arguments: Sequence[Any]) -> None:
    actual, eager = results(operator, arguments), results(operator.reference, arguments)
    exact = results(operator.reference, arguments, exactly=True)
    assert operator.last_rung == "cpp"
    inputs = [argument for argument in arguments if isinstance(argument, Tensor)]
    for position, triple in enumerate(zip(actual, eager, exact, strict=True)):
        if eager[position].is_complex() or eager[position].dtype is torch.float64:
            torch.testing.assert_close(*triple[:2])
        else:
            Comparison(f"result {position}", *([tensor] for tensor in triple), inputs=inputs).judge()


@pytest.fixture(scope="module")
def settings() -> Settings:
    return settings_on_host()


@pytest.mark.parametrize(("name", "count"), mostly_at_night(dict.fromkeys([*BY_DAY, *ALL]), BY_DAY))
def test_kernel(name: str, count: int, settings: Settings) -> None:
    reference, calls = CASES[name][0], CASES[name][1][:count]
    architecture = ARCHITECTURES[list(CASES).index(name) % len(ARCHITECTURES)]
    with cuda_kernels() as programs:
        operator = Operator(reference, name=f"cuda_kernels::{name}_{count}", settings=settings)
        for arguments in calls:
            assert_as_exact_as_eager(operator, arguments)
    assert programs
    if name in COMPILED_BY_DAY:
        assert all(machine_code(program, architecture).startswith(b"\x7fELF") for program in programs)


@pytest.mark.nightly
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", CASES.keys() - {"numbers"})
def test_machine_code(name: str, architecture: str) -> None:
    reference, (arguments, *_) = CASES[name]
    derivation = derive(reference, specs_of([f"x{k}" for k in range(len(arguments))], arguments), name)
    programs = [program for program in (derivation.forward, derivation.backward) if program is not None]
    assert all(machine_code(program, architecture).startswith(b"\x7fELF") for program in programs)


def test_a_wrong_kernel_is_noticed(settings: Settings) -> None:
    arguments = CASES["normalized"][1][0]
    operator = Operator(normalized, name="cuda_kernels::wrong", settings=settings)
    wrong = [tensor * 1.001 for tensor in results(normalized, arguments)]
    exact, eager = results(normalized, arguments, exactly=True), results(operator.reference, arguments)
    with pytest.raises(Fault, match="is wrong"):
        Comparison("output", wrong, eager, exact, inputs=list(arguments)).judge()
