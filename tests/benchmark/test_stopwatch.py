"""A clock that thunks advance makes timing exact."""

import gc

import pytest

from opwright.benchmark.stopwatch import Plan, interleave


class FakeClock:
    def __init__(self):
        self.now_ns = 0
        self.log = []

    def __call__(self):
        return self.now_ns

    def thunk(self, name, *durations_ns):
        calls = iter(range(10**9))

        def run():
            self.log.append(name)
            self.now_ns += durations_ns[next(calls) % len(durations_ns)]

        return run


PLAN = Plan(slice_ns=1000, fewest_rounds=3, most_rounds=8)


def test_medians_are_in_microseconds_of_one_call():
    clock = FakeClock()
    timings = interleave({"slow": clock.thunk("slow", 5000), "fast": clock.thunk("fast", 10)}, plan=PLAN, clock=clock)
    assert timings["slow"].median_us == 5.0
    assert timings["fast"].median_us == pytest.approx(0.01)


def test_a_fast_thunk_is_repeated_until_it_fills_a_slice():
    clock = FakeClock()
    interleave({"fast": clock.thunk("fast", 10)}, plan=Plan(1000, 2, 2), clock=clock)
    warm_up, rounds = 1 + 10 + 100, 2 * 100
    assert len(clock.log) == warm_up + rounds


def test_steady_thunks_stop_early_and_unsteady_ones_do_not():
    clock = FakeClock()
    steady = interleave({"a": clock.thunk("a", 2000)}, plan=PLAN, clock=clock)
    unsteady = interleave({"a": clock.thunk("a", 2000), "b": clock.thunk("b", 2000, 4000)}, plan=PLAN, clock=clock)
    assert steady["a"].rounds == 3
    assert {timing.rounds for timing in unsteady.values()} == {8}
    assert unsteady["b"].spread > 0.5


def test_each_round_begins_with_another_thunk():
    clock = FakeClock()
    thunks = {name: clock.thunk(name, 2000) for name in "abc"}
    interleave(thunks, plan=PLAN, clock=clock)
    warm_up, rounds = "".join(clock.log[:3]), "".join(clock.log[3:])
    assert (warm_up, rounds) == ("abc", "abc" + "bca" + "cab")


def test_what_a_thunk_started_is_waited_for_within_the_measurement():
    clock = FakeClock()

    def finish():
        clock.now_ns += 3000

    timings = interleave({"a": clock.thunk("a", 2000)}, plan=PLAN, finish=finish, clock=clock)
    assert timings["a"].median_us == 5.0


def test_the_garbage_collector_rests_and_returns_even_after_an_exception():
    states = []

    def broken():
        states.append(gc.isenabled())
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        interleave({"broken": broken})
    assert states == [False]
    assert gc.isenabled()
