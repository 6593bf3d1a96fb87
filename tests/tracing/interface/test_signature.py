from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, TypeVar

import pytest
import torch

from opwright.errors import OpwrightError, UnsupportedReturn
from opwright.tracing.interface.signature import place_of, read_signature

Tensor = torch.Tensor


class Pair(NamedTuple):
    left: Tensor
    right: Tensor


class Untyped(NamedTuple):
    left: set[int]


ONES = torch.ones(3)
Image = NewType("Image", Tensor)
Item = TypeVar("Item")


class Buffer(Tensor): ...


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


def nothing(x: Tensor) -> None: ...
def anything(x: Any, y: Tensor = ONES) -> Any: ...
def missing(x: Missing, y: Tensor | None = None) -> Missing: ...  # noqa: F821
def told_more(x: Annotated[Tensor, "B H"], y: Image, z: torch.nn.Parameter, w: Buffer, v: Item) -> Tensor: ...
def literal(x: Tensor, mode: Literal["a", "b"], either: Literal[1, "c"]) -> Tensor: ...


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
    unannotated: ([None, "Tensor y"], 1),
    variadic: ([None], 1),
    keywords: (["Tensor x", None], 1),
    bare_list: ([None], 1),
    of_sets: ([None], 1),
    untyped_pair: ([None], 1),
    nothing: (["Tensor x"], None),
    anything: ([None, None], None),
    missing: ([None, "Tensor? y=None"], None),
    told_more: (["Tensor x", "Tensor y", "Tensor z", "Tensor w", None], 1),
    literal: (["Tensor x", "str mode", None], 1),
}
REFUSED: dict[Callable[..., Any], tuple[type[OpwrightError], str]] = {
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


def any_number(x: Tensor, *rest: Tensor, scale: float = 1.0, **others: Tensor) -> Tensor: ...


@pytest.mark.parametrize(
    ("args", "kwargs", "bound"),
    [
        ((1,), {}, (1, (), 1.0, {})),
        ((1, 2, 3), {"scale": 2.0, "y": 4}, (1, (2, 3), 2.0, {"y": 4})),
        ((), {"x": 1, "z": 5}, (1, (), 1.0, {"z": 5})),
    ],
)
def test_what_is_left_is_collected(args: tuple[Any, ...], kwargs: dict[str, Any], bound: tuple[Any, ...]) -> None:
    signature = read_signature(any_number)
    assert signature.bind(args, kwargs) == bound
    positional, by_keyword = signature.split(bound)
    assert signature.bind(tuple(positional), by_keyword) == bound


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((1,), {}, r"^numbers\(\): missing a required argument: 'alpha'$"),
        ((1, 2.0, 3, True, "a", 6), {}, r"^numbers\(\): too many positional arguments$"),
        ((1, 2.0), {"x": 1}, "multiple values for argument 'x'"),
        ((1, 2.0), {"beta": 1}, "unexpected keyword argument 'beta'"),
    ],
)
def test_bind_refuses_as_python_does(args: tuple[Any, ...], kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        read_signature(numbers).bind(args, kwargs)
