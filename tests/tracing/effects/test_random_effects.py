"""Random functions with and without effects, against eager: results, and the objects outside, over several calls."""

from __future__ import annotations

import types
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_map_only

from opwright.api.operator import Operator
from tests.quiet_settings import quiet_settings
from tests.tracing.effects.random_effects import EFFECTS, Program, program_with, random_program

pytestmark = pytest.mark.falls_back

BY_DAY, BY_NIGHT = range(20), range(20, 260)


_HELD = frozenset({
    "TABLE", "LOG", "COUNT", "NESTED", "MADE", "QUEUE", "ORDERED", "DEFAULTED", "COUNTED", "NUMBERS", "HEAP", "BYTES",
    "DOUBLES", "RECORD", "FIELDS",
})  # fmt: skip


def state(module: types.ModuleType) -> Any:
    box = vars(module.BOX)
    held = {name: member for name, member in vars(module).items() if name in _HELD}
    slot = getattr(module.SLOTS, "value", None)
    members = [held, sorted(module.SEEN), box, module.Box.total, slot, bytes(module.VIEW)]
    return tree_map_only(torch.Tensor, lambda tensor: (type(tensor), tensor.tolist()), members)


def compare(program: Program, name: str) -> None:
    eager, ours = program.load(), program.load()
    operator = Operator(ours.f, name=f"effects_{name}", settings=quiet_settings(optimized=False))
    for call in range(3):
        x = torch.arange(1.0, 5.0) + call
        assert torch.allclose(operator(x), eager.f(x)), program.source
        assert repr(state(ours)) == repr(state(eager)), program.source
        if call == 0 or not program.has_effect:  # later it may have nothing left to change, and kernels then
            assert operator.last_rung == ("composed" if program.has_effect else "cpp"), program.source


@pytest.mark.parametrize("seed", BY_DAY)
def test_as_in_eager(seed: int) -> None:
    compare(random_program(seed), str(seed))


@pytest.mark.parametrize("effect", range(EFFECTS))
def test_each_effect_is_as_in_eager(effect: int) -> None:
    compare(program_with(effect), f"alone_{effect}")


@pytest.mark.nightly
@pytest.mark.parametrize("seed", BY_NIGHT)
def test_as_in_eager_by_night(seed: int) -> None:
    compare(random_program(seed), str(seed))


def test_a_dropped_effect_would_be_seen() -> None:
    program = next(made for made in map(random_program, range(100)) if made.has_effect)
    eager, ours = program.load(), program.load()
    eager.f(torch.ones(4))
    assert repr(state(ours)) != repr(state(eager))
