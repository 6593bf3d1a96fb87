"""Random functions that read from outside what changes between calls, and between processes that share a cache."""

import pytest

from tests.suite.nights import mostly_at_night
from tests.suite.warm_python import run as run_warm

_BLOCK, _BLOCKS = 25, 40


def run(first, count, salt):
    ran = run_warm("-m", "tests.run_outside", *map(str, (first, count, salt)), timeout=900)
    assert ran.stdout.endswith(f"{count} programs, 0 wrong\n"), ran.stdout + ran.stderr[-4000:]


@pytest.mark.parametrize("first", mostly_at_night([0, 6], by_day=1))
def test_no_value_is_stale(first):
    for salt in (0, 1):
        run(first, 4, salt)


@pytest.mark.nightly
@pytest.mark.parametrize("block", range(_BLOCKS))
def test_no_value_of_a_thousand_programs_is_stale(block):
    for salt in (0, 1):
        run(block * _BLOCK, _BLOCK, salt)
