"""Random functions that read from outside, in this process: `python -m tests.run_outside FIRST COUNT SALT`.

The programs of one block are the same in every process that shares a cache; the values that they begin with are not, by
`SALT`, so that a kernel of another process's values would be seen.
"""

from __future__ import annotations

import sys
import traceback
import types
from random import Random

import torch

import opwright
from tests.outside_program import READS, random_outside_program, undone

_NUMBERS = (0.5, 1.5, 2.0, -3.0, 0.25, -0.0)


def run(seed: int, salt: int) -> list[str]:
    """What was wrong with a program, over several changes of what it reads; nothing if all is right."""
    program, random = random_outside_program(seed), Random(seed * 1000 + salt)
    wrong = []
    module = sys.modules[f"outside_program_{seed}"] = types.ModuleType(f"outside_program_{seed}")
    namespace = vars(module)
    exec(compile(program.text, f"<outside program {seed}>", "exec"), namespace)
    function = namespace["program"]
    operator = opwright.operator(name=f"outside_{seed}")(function)
    x = torch.linspace(-1, 1, 6).requires_grad_()
    places = [p for p, kind in enumerate(program.reads) if READS[kind].change]
    if salt:
        namespace["change"](random.choice(places), random.choice(_NUMBERS))
    for step in range(4):
        if step:
            namespace["change"](random.choice(places), random.choice(_NUMBERS))
        for _ in range(2):
            ours, eager = operator(x), function(x)
            if not torch.equal(ours.detach(), eager.detach()) and not torch.allclose(ours, eager, rtol=1e-5, atol=1e-6):
                wrong.append(f"program {seed} {program.reads} step {step}: {ours} is not {eager}")
            if eager.requires_grad != ours.requires_grad:
                wrong.append(f"program {seed} {program.reads} step {step}: gradients")
            elif eager.requires_grad:
                mine, theirs = (torch.autograd.grad(y.sum(), x)[0] for y in (ours, eager))
                if not torch.allclose(mine, theirs, rtol=1e-5, atol=1e-6):
                    wrong.append(f"program {seed} {program.reads} step {step}: gradient {mine} is not {theirs}")
        if operator.last_rung != "cpp":
            wrong.append(f"program {seed} {program.reads} step {step}: served by {operator.last_rung}")
    return wrong


def main(first: int, count: int, salt: int) -> int:
    """Run programs; print what was wrong, and how many there were."""
    wrong = []
    for seed in range(first, first + count):
        try:
            with undone():
                wrong += run(seed, salt)
        except Exception:
            wrong.append(f"program {seed}\n{traceback.format_exc()}")
    print("\n".join(wrong))
    print(f"{count} programs, {len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
