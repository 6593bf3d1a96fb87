"""A result that is rounding noise, since larger numbers cancel in it, is judged by how large those numbers are."""

import torch
from torch.nn import functional

from opwright.checking import check
from opwright.checking.roundings import random_roundings
from opwright.samples import shapes

EPS = torch.finfo(torch.float32).eps
SAMPLES = shapes("B S", "B S", B=(4, 16), S=(40, 33))


def divergence(x, y):
    return functional.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="sum")


def divergence_by_hand(x, y, error=0.0):
    log_x, log_y = (z - z.logsumexp(-1, keepdim=True) for z in (x, y))
    return (log_y.exp() * (log_y - log_x + error)).sum()


def judged(candidate):
    return check(candidate, divergence, SAMPLES, dtypes=(torch.float32, torch.float64), only=("same tensor twice",))


def test_a_divergence_of_a_tensor_from_itself_may_be_noise():
    assert judged(divergence_by_hand).passed


def test_a_small_error_where_all_cancels_is_found_and_the_values_are_said():
    verdict = judged(lambda x, y: divergence_by_hand(x, y, 3e-6 if x is y else 0.0))
    row = next(row for row in verdict.rows if row.status == "failed")
    assert "; it is " in row.detail
    assert ", exactly " in row.detail
    assert ", eager " in row.detail


def made(run, dtype=torch.float32):
    return torch.stack([tensor for (tensor,) in random_roundings(lambda: [run()], dtype)])


def test_roundings_are_as_large_as_the_numbers_that_cancel():
    x = torch.linspace(1.0, 2.0, 50, dtype=torch.float64)
    for size in (1.0, 1e6):
        moved = made(lambda size=size: x.exp() * size - x.exp() * size).abs().max()
        assert size * EPS < moved < 30 * size * EPS


def test_numbers_that_a_dtype_holds_are_not_rounded():
    whole = torch.arange(8, dtype=torch.float64)
    assert torch.equal(made(lambda: (whole + 1).clone() * 2), ((whole + 1) * 2).expand(8, 8))


def test_complex_numbers_are_rounded_and_a_function_that_raises_tells_nothing():
    z = torch.full((3,), 1 / 3 + 0.7j, dtype=torch.complex128)
    assert 0 < (made(lambda: z * z, torch.complex64) - z * z).abs().max() < 2 * EPS

    def raising():
        raise ValueError

    assert random_roundings(raising, torch.float32) == []
