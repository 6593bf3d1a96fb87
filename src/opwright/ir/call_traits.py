"""What is known of library operations beyond their results, by name."""

from __future__ import annotations

# They draw from torch's generator: never left out, never run twice, in the order of the reference.
RANDOM = frozenset(
    f"aten::{name}"
    for name in (
        *("bernoulli", "binomial", "cauchy", "exponential", "geometric", "log_normal", "multinomial"),
        *("native_dropout", "normal", "normal_functional", "poisson", "rand", "rand_like", "randint", "randint_like"),
        *("randn", "randn_like", "random", "randperm", "uniform"),
    )
)

# They raise for some values: never left out.
CHECKS = frozenset({"aten::_linalg_check_errors", "aten::_assert_async"})

# They read operands with any strides at full speed. Others get operands that lie row by row, as in the trace: an
# operation below PyTorch's public ones may rely on it.
TAKES_ANY_STRIDES = frozenset(
    f"aten::{name}"
    for name in (
        *("mm", "bmm", "addmm", "baddbmm", "mv", "dot", "sum", "mean", "amax", "amin", "prod", "any", "all"),
        *("cumsum", "index", "index_select", "gather", "embedding", "reshape", "contiguous", "convolution"),
    )
)


def has_effect(function: str) -> bool:
    """Whether an operation does more than give its results."""
    return function in RANDOM or function in CHECKS
