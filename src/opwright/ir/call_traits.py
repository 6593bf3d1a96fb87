"""Traits of library operations, by name: which are random, may raise, read any strides, or return new memory."""

from __future__ import annotations

# Random operations: never removed, never run twice, kept in the order of the reference.
RANDOM = frozenset(
    f"aten::{name}"
    for name in (
        *("bernoulli", "binomial", "cauchy", "exponential", "geometric", "log_normal", "multinomial"),
        *("native_dropout", "normal", "normal_functional", "poisson", "rand", "rand_like", "randint", "randint_like"),
        *("randn", "randn_like", "random", "randperm", "uniform"),
    )
)

# The same, into memory that a Program has made for this, in the order in which it lies.
DRAWS_INTO = frozenset(f"aten::{name}" for name in ("bernoulli_", "exponential_", "normal_", "uniform_"))

# May raise, depending on values: never removed.
CHECKS = frozenset({"aten::_linalg_check_errors", "aten::_assert_async"})

# May raise as well: because of indices that are out of range, a number that a dtype does not hold, or integers that are
# divided by zero. Removed only from what no user has written, such as a gradient: the forward pass has raised.
_RAISES = frozenset(
    f"aten::{name}"
    for name in (
        *("embedding", "gather", "index", "index_add", "index_copy", "index_fill", "index_put", "index_reduce"),
        *("index_select", "put", "scatter", "scatter_add", "scatter_reduce", "take"),
        *("fill", "full", "full_like", "masked_fill"),
    )
)
_DIVIDES = frozenset(f"aten::{name}" for name in ("div", "floor_divide", "fmod", "pow", "remainder"))

# These read operands with any strides at full speed. All others get contiguous operands, as in the trace: an internal
# ATen operation may rely on that.
TAKES_ANY_STRIDES = DRAWS_INTO | frozenset(
    f"aten::{name}"
    for name in (
        *("mm", "bmm", "addmm", "baddbmm", "mv", "dot", "sum", "mean", "amax", "amin", "prod", "any", "all"),
        *("cumsum", "index", "index_select", "gather", "embedding", "linear", "reshape", "contiguous", "convolution"),
    )
)

# What these return is in memory of its own, never an operand's. Only operations are listed whose results are often seen
# in another shape.
RETURNS_NEW = frozenset(
    f"aten::{name}"
    for name in (
        *("mm", "bmm", "mv", "linear", "convolution", "convolution_backward", "max_pool1d"),
        *("max_pool2d_with_indices", "max_pool2d_with_indices_backward", "avg_pool2d", "avg_pool2d_backward"),
        *("_adaptive_avg_pool2d", "_adaptive_avg_pool2d_backward"),
    )
)


def refuses_zeros(function: str, *, integers: bool) -> bool:
    """Whether an operation may refuse zeros where it took other values; `integers` is what it gives."""
    name = function.removesuffix("_")
    return name in CHECKS or name == "aten::multinomial" or (integers and name in _DIVIDES)


def relies_on_contiguity(function: str) -> bool:
    """Whether an operation may read other memory where its operands are not contiguous: internal ones alone."""
    return function.startswith("aten::_") and function not in TAKES_ANY_STRIDES


def has_effect(function: str) -> bool:
    """Whether an operation has a side effect."""
    return function in RANDOM or function in DRAWS_INTO or function in CHECKS


def may_raise(function: str, *, integers: bool) -> bool:
    """Whether an operation, or the one in place, raises if it is given certain values; `integers` is what it gives."""
    name = function.removesuffix("_")
    return name in CHECKS or name in _RAISES or (integers and name in _DIVIDES)
