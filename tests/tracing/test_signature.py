from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import pytest
import torch

from opwright.errors import OpwrightError, UnannotatedParameter, UnsupportedParameter, UnsupportedReturn
from opwright.tracing.signature import place_of, read_signature

Tensor = torch.Tensor


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


READ: dict[Callable[..., Any], tuple[list[str], int | None]] = {
    plain: (["Tensor x", "Tensor y"], 1),
    numbers: (["Tensor x", "float alpha", "int count=3", "bool keep=True", 'str mode="none"'], 2),
    optional: (["Tensor x", "Tensor? bias=None", "float? scale=None"], None),
}
REFUSED: dict[Callable[..., Any], tuple[type[OpwrightError], str]] = {
    unannotated: (UnannotatedParameter, "parameter 'x' of unannotated has no annotation"),
    variadic: (UnsupportedParameter, "variadic takes a variable number of arguments"),
    keywords: (UnsupportedParameter, "keywords takes a variable number of arguments"),
    keyword_only: (UnsupportedParameter, "'alpha' of keyword_only can be given by keyword only"),
    listed: (UnsupportedParameter, "parameter 'xs' of listed is annotated list"),
    either: (UnsupportedParameter, "parameter 'alpha' of either is annotated"),
    returns_number: (UnsupportedReturn, "returns_number is annotated to return"),
    returns_any_number: (UnsupportedReturn, "returns_any_number is annotated to return"),
}


@pytest.mark.parametrize(("reference", "expected"), READ.items())
def test_read(reference: Callable[..., Any], expected: tuple[list[str], int | None]) -> None:
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
