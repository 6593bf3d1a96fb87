from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Optional

import pytest
import torch

from opwright.errors import OpwrightError, UnannotatedParameter, UnsupportedParameter, UnsupportedReturn
from opwright.tracing.signature import place_of, read_signature

Tensor = torch.Tensor


class Pair(NamedTuple):
    left: Tensor
    right: Tensor


class Untyped(NamedTuple):
    left: set[int]


def plain(x: Tensor, y: torch.Tensor) -> Tensor: ...
def numbers(
    x: Tensor, alpha: float, count: int = 3, keep: bool = True, mode: str = "none"
) -> tuple[Tensor, Tensor]: ...
def optional(x: Tensor, bias: Tensor | None = None, scale: Optional[float] = None): ...  # noqa: UP045
def unannotated(x, y: Tensor) -> Tensor: ...
def variadic(*xs: Tensor) -> Tensor: ...
def keywords(x: Tensor, **options: float) -> Tensor: ...
def keyword_only(x: Tensor, *, alpha: float) -> Tensor: ...
def listed(xs: list[Tensor]) -> Tensor: ...
def either(x: Tensor, alpha: float | int) -> Tensor: ...
def returns_number(x: Tensor) -> float: ...
def returns_any_number(x: Tensor) -> tuple[Tensor, ...]: ...
def returns_numbers(x: Tensor) -> list[float]: ...
def bare_list(xs: list) -> Tensor: ...  # type: ignore[type-arg]
def of_sets(xs: set[int]) -> Tensor: ...
def untyped_pair(pair: Untyped) -> Tensor: ...
def lists(xs: Sequence[Tensor | None], sizes: tuple[int, ...] = (1, 2), dtype: torch.dtype | None = None) -> Tensor: ...
def structures(state: Pair, weights: dict[str, list[Tensor]], *, either: float | Tensor = 1.0) -> Pair: ...


READ: dict[Callable[..., Any], tuple[list[str | None], int | None]] = {
    plain: (["Tensor x", "Tensor y"], 1),
    numbers: (["Tensor x", "float alpha", "int count=3", "bool keep=True", 'str mode="none"'], 2),
    optional: (["Tensor x", "Tensor? bias=None", "float? scale=None"], None),
    keyword_only: (["Tensor x", "float alpha"], 1),
    listed: (["Tensor[] xs"], 1),
    either: (["Tensor x", None], 1),
    returns_any_number: (["Tensor x"], None),
    lists: (["Tensor?[] xs", "int[] sizes=[1, 2]", "ScalarType? dtype=None"], 1),
    structures: ([None, None, None], None),
}
REFUSED: dict[Callable[..., Any], tuple[type[OpwrightError], str]] = {
    unannotated: (UnannotatedParameter, "parameter 'x' of unannotated has no annotation"),
    variadic: (UnsupportedParameter, "variadic takes a variable number of arguments"),
    keywords: (UnsupportedParameter, "keywords takes a variable number of arguments"),
    bare_list: (UnsupportedParameter, "parameter 'xs' of bare_list is annotated <class 'list'>"),
    of_sets: (UnsupportedParameter, "parameter 'xs' of of_sets is annotated set"),
    untyped_pair: (UnsupportedParameter, "parameter 'pair' of untyped_pair is annotated"),
    returns_number: (UnsupportedReturn, "returns_number is annotated to return"),
    returns_numbers: (UnsupportedReturn, "returns_numbers is annotated to return"),
}


@pytest.mark.parametrize(("reference", "expected"), READ.items())
def test_read(reference: Callable[..., Any], expected: tuple[list[str | None], int | None]) -> None:
    signature = read_signature(reference)
    assert ([parameter.schema for parameter in signature.parameters], signature.outputs) == expected


@pytest.mark.parametrize(("reference", "refusal"), REFUSED.items())
def test_refusal(reference: Callable[..., Any], refusal: tuple[type[OpwrightError], str]) -> None:
    error, message = refusal
    with pytest.raises(error, match=message) as caught:
        read_signature(reference)
    assert caught.value.place == place_of(reference)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("args", "kwargs", "bound"),
    [
        ((1, 2.0), {}, (1, 2.0, 3, True, "none")),
        ((1,), {"alpha": 2.0, "mode": "sum"}, (1, 2.0, 3, True, "sum")),
        ((), {"alpha": 2.0, "x": 1, "keep": False}, (1, 2.0, 3, False, "none")),
    ],
)
def test_bind(args: tuple[Any, ...], kwargs: dict[str, Any], bound: tuple[Any, ...]) -> None:
    assert read_signature(numbers).bind(args, kwargs) == bound


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((1,), {}, "missing a required argument: 'alpha'"),
        ((1, 2.0, 3, True, "a", 6), {}, "too many positional arguments"),
        ((1, 2.0), {"x": 1}, "multiple values for argument 'x'"),
        ((1, 2.0), {"beta": 1}, "unexpected keyword argument 'beta'"),
    ],
)
def test_bind_refuses_as_python_does(args: tuple[Any, ...], kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        read_signature(numbers).bind(args, kwargs)
