"""Which dimensions a reduction is given: none, lists of none, negative ones, ones that are not there or there twice."""

import math
from functools import partial

import pytest
import torch
from torch import Tensor

from opwright.api.operator import Operator
from tests.quiet_settings import quiet_settings
from tests.suite.nights import mostly_at_night

REDUCTIONS = {
    "all": torch.all, "any": torch.any, "sum": torch.sum, "mean": torch.mean, "nansum": torch.nansum,
    "amax": torch.amax, "amin": torch.amin, "var": torch.var, "std": torch.std, "var_mean": torch.var_mean,
    "logsumexp": torch.logsumexp, "norm": torch.norm, "vector_norm": torch.linalg.vector_norm,
    "norm_inf": partial(torch.linalg.vector_norm, ord=math.inf), "norm_0": partial(torch.linalg.vector_norm, ord=0),
    "count_nonzero": lambda x, dim, keepdim: torch.count_nonzero(x, dim=dim),
    "prod": torch.prod, "argmax": torch.argmax, "argmin": torch.argmin, "max": torch.max, "median": torch.median,
    "aminmax": lambda x, dim, keepdim: torch.aminmax(x, dim=dim, keepdim=keepdim),
    "softmax": lambda x, dim, keepdim: torch.softmax(x, dim), "cumsum": lambda x, dim, keepdim: torch.cumsum(x, dim),
    "log_softmax": lambda x, dim, keepdim: torch.log_softmax(x, dim),
}  # fmt: skip
DIMENSIONS = [(), [], 0, -1, (0,), (0, -1), (-2,), (0, 0), (0, -2), 5, (5,), (0, 1)]
SHAPES = ((2, 1, 4), (), (3,), (2, 3))
CASES = [(name, shape) for shape in SHAPES for name in REDUCTIONS]
BY_DAY = [*((name, SHAPES[0]) for name in ("all", "any", "amax", "median")), ("var_mean", ()), ("argmin", ())]


def _leaves(returned):
    return list(returned) if isinstance(returned, tuple) else [returned]


def _reducing(reduce, cases):
    """A function that reduces in several ways."""

    def every(x: Tensor):
        return [each * 1 for dim, keep in cases for each in _leaves(reduce(x * 1.5, dim=dim, keepdim=keep))]

    return every


def _raised(call, *arguments):
    """What a call raises; None if it gives something."""
    try:
        call(*arguments)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.falls_back
@pytest.mark.filterwarnings("ignore:.*degrees of freedom is <= 0")
@pytest.mark.parametrize(("name", "shape"), mostly_at_night(CASES, BY_DAY), ids=str)
def test_dimensions_mean_what_they_mean_to_torch(name, shape):
    x = torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape) - 1  # a zero among them
    each = [_reducing(REDUCTIONS[name], [(dim, keep)]) for dim in DIMENSIONS for keep in (False, True)]
    cases = [(dim, keep) for dim in DIMENSIONS for keep in (False, True)]
    refused = [function for function in each if _raised(function, x)]
    taken = [case for function, case in zip(each, cases, strict=True) if function not in refused]
    for function in [*refused, *([_reducing(REDUCTIONS[name], taken)] if taken else [])]:
        operator = Operator(function, settings=quiet_settings(optimized=False))
        if function in refused:
            assert _raised(operator, x) == _raised(function, x)
            continue
        for result, expected in zip(operator(x), function(x), strict=True):
            torch.testing.assert_close(result, expected, equal_nan=True)
