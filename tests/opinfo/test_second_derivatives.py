"""Second derivatives by forward mode, against finite differences, for PyTorch's whole table of operations.

PyTorch takes part of some tangents as constants, so that its own second derivatives by forward mode are silently wrong.
What is derived is right: such operations are composed of others or differentiated in reverse mode. No kernels are made
here: the functions that kernels are derived from run as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from opwright.derivation.forward import jvp_reference
from opwright.errors import OpwrightError
from tests.opinfo.cases import LEFT_OUT, Case, cases_of, operations
from tests.suite.nights import mostly_at_night

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's samples use what PyTorch advises against

D = torch.float64
BY_DAY = ("cumprod", "linalg.solve", "nn.functional.layer_norm")
TORCHS = "linalg.householder_product"  # which torch itself gets wrong, up to 2.15
EXCEPTIONS = LEFT_OUT | {
    **dict.fromkeys(
        ["linalg.cholesky", "linalg.cholesky_ex", "linalg.eigh", "linalg.eigvalsh", "linalg.pinv.hermitian"],
        "reads one triangle of a matrix and gives the gradient of a symmetric one",
    ),
    "cholesky_solve": "the same",
    "cholesky_inverse": "the same",
    "triangular_solve": "the same",
    **dict.fromkeys(
        ["native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update"],
        "takes the statistics that it returns as constants, in reverse mode, too",
    ),
    "linalg.eig": "eigenvectors have any length and phase",
    "nn.functional.cosine_embedding_loss": "its samples differentiate by a label",
}

Along = Callable[..., Tensor]


def of_table() -> list[str]:
    return [name for name, info in operations().items() if D in info.dtypes and info.supports_forward_ad]


@pytest.mark.parametrize("name", mostly_at_night(of_table(), BY_DAY))
def test_second_derivatives_are_right(name: str) -> None:
    if name in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[name])
    for case in cases_of(name, D, 6):
        wrong = _wrong(case, _derived)
        assert not wrong, f"{name} of {[tuple(each.shape) for each in case.tensors]}: {wrong}"


def test_torchs_own_are_not() -> None:
    assert any(_wrong(case, _torchs) for case in cases_of(TORCHS, D, 6))


def _torchs(function: Along, moving: tuple[int, ...], tangents: tuple[Tensor, ...]) -> Along:
    return lambda *values: torch.func.jvp(function, values, tangents)[1]


def _derived(function: Along, moving: tuple[int, ...], tangents: tuple[Tensor, ...]) -> Along:
    forward = jvp_reference(function, len(moving), moving)
    return lambda *values: forward(*values, *tangents)[1]


def _wrong(case: Case, along: Callable[..., Along]) -> dict[str, tuple[float, float]]:
    """By the way that is wrong: the second derivative in a direction, and what it is by finite differences."""
    places = [p for p, each in enumerate(case.tensors) if each.requires_grad and each.numel()]
    values = tuple(case.tensors[place].detach() for place in places)
    generator = torch.Generator().manual_seed(0)
    tangents = tuple(torch.rand(value.shape, generator=generator, dtype=D) + 0.3 for value in values)
    moving = tuple(range(len(places)))

    def function(*moved: Tensor) -> Tensor:
        given = list(case.tensors)
        for place, value in zip(places, moved, strict=True):
            given[place] = value.clone()
        torch.manual_seed(3)
        return _weighed(case.function(*given))

    try:
        first = _torchs(function, moving, tangents)
        expected, finer = (_difference(first, values, tangents, step) for step in (1e-5, 3e-6))
        if not places or not torch.allclose(expected, finer, rtol=1e-3, atol=1e-4):
            return {}  # it is not smooth here
    except (RuntimeError, TypeError):  # torch has no formula
        return {}
    along_it = along(function, moving, tangents)
    ways = {
        "forward over forward": lambda: along(along_it, moving, tangents)(*values),
        "reverse over forward": lambda: _product(torch.func.grad(along_it, moving)(*values), tangents),
    }
    found = {}
    for way, compute in ways.items():
        try:
            value = compute()
        except (RuntimeError, OpwrightError):  # torch has no formula, which is no wrong number
            continue
        if not torch.allclose(value, expected, rtol=2e-3, atol=1e-3) and not value.isnan():
            found[way] = value.item(), expected.item()
    return found


def _weighed(result: Any) -> Tensor:
    """A sum in which every element has a weight of its own."""
    results = [each for each in torch.utils._pytree.tree_leaves(result) if isinstance(each, Tensor)]
    plain = [torch.view_as_real(each.resolve_conj()) if each.is_complex() else each for each in results]
    return torch.stack(
        [
            (each * torch.linspace(0.5, 1.5, each.numel(), dtype=D).view(each.shape)).sum()
            for each in plain
            if each.is_floating_point()
        ]
    ).sum()


def _difference(first: Along, values: tuple[Tensor, ...], tangents: tuple[Tensor, ...], step: float) -> Tensor:
    ahead, behind = (
        first(*[value + sign * step * tangent for value, tangent in zip(values, tangents, strict=True)])
        for sign in (1, -1)
    )
    return (ahead - behind) / (2 * step)


def _product(gradients: tuple[Tensor, ...], tangents: tuple[Tensor, ...]) -> Tensor:
    return torch.stack([(each * tangent).sum() for each, tangent in zip(gradients, tangents, strict=True)]).sum()
