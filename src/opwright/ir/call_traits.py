"""Traits of library operations, by name: which are random, which may raise, which read any strides."""

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

# May raise, depending on values: never removed.
CHECKS = frozenset({"aten::_linalg_check_errors", "aten::_assert_async"})

# These read operands with any strides at full speed. All others get contiguous operands, as in the trace: an internal
# ATen operation may rely on that.
TAKES_ANY_STRIDES = frozenset(
    f"aten::{name}"
    for name in (
        *("mm", "bmm", "addmm", "baddbmm", "mv", "dot", "sum", "mean", "amax", "amin", "prod", "any", "all"),
        *("cumsum", "index", "index_select", "gather", "embedding", "reshape", "contiguous", "convolution"),
    )
)


def has_effect(function: str) -> bool:
    """Whether an operation has a side effect."""
    return function in RANDOM or function in CHECKS
