"""Children that are forked at any moment run operators: while other threads trace and build, and run large kernels.

Each program is a process of its own. A child has a time limit: one that waits for a thread that is no more is ended by
it, and fails the test.
"""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest

from tests.suite.warm_python import run

PREAMBLE = textwrap.dedent("""
    import os, random, signal, sys, threading, time, traceback, warnings
    import torch, opwright
    from torch import Tensor

    warnings.filterwarnings("ignore", ".*use of fork.*", DeprecationWarning)
    children, moments = int(sys.argv[1]), random.Random(int(sys.argv[2]))

    def forked(work):
        child = os.fork()
        if child == 0:
            signal.alarm(100)
            try:
                work()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        return os.waitpid(child, 0)[1]

    def close(found, expected):
        return (found - expected).abs().max().item() <= 1e-5 * max(1, expected.abs().max().item())
""")

# Two threads derive and build operator after operator. A child uses one that they are about, and makes one of its own.
WHILE_OTHERS_DERIVE = PREAMBLE + textwrap.dedent("""
    def make(number):
        text = f"def made_{number}(x: Tensor) -> Tensor:\\n"
        text += f"    y = x * {number}.5\\n    return y.sin() if x.shape[0] > 2 else y.cos()\\n"
        path = os.path.join(os.environ["OPWRIGHT_CACHE"], f"made_{number}.py")
        with open(path, "w") as file:
            file.write(text)
        names = {"Tensor": Tensor}
        exec(compile(text, path, "exec"), names)
        return opwright.Operator(names[f"made_{number}"], name=f"forked::made_{number}")

    operators, position = [make(number) for number in range(200)], [0]
    if os.environ["OPWRIGHT_TAPE"] == "now":  # whose build takes a minute
        operators[0](torch.randn(5))

    def derive():
        while True:
            position[0] = (position[0] + 1) % len(operators)
            operators[position[0]](torch.randn(5, requires_grad=True)).sum().backward()

    def use():
        x = torch.linspace(-1, 1, 5, requires_grad=True)
        for operator in (operators[position[0]], make(10_000 + os.getpid())):
            y = operator(x)
            (gradient,) = torch.autograd.grad(y.sum(), x)
            (expected,) = torch.autograd.grad(operator.reference(x).sum(), x)
            assert close(y, operator.reference(x)) and close(gradient, expected), "a wrong result"
            assert operator.last_rung == "cpp", operator.last_rung

    for _ in range(2):
        threading.Thread(target=derive, daemon=True).start()
    bad = 0
    for _ in range(children):
        time.sleep(moments.random() * 0.6)
        bad += forked(use) != 0
    os._exit(bad)
""")

# Two threads run a kernel with results of pooled memory, on several threads of OpenMP each; so did the one that forks.
WHILE_KERNELS_RUN = PREAMBLE + textwrap.dedent("""
    torch.set_num_threads(2)

    @opwright.operator
    def affine(x: Tensor) -> Tensor:
        return x * 2 + 1

    x = torch.ones(1 << 20)
    expected = affine(x).tolist()
    assert affine.last_rung == "cpp"

    def run():
        while True:
            affine(x)

    def use():
        assert all(affine(x).tolist() == expected for _ in range(3))  # eager's own kernels would wait for ever

    for _ in range(2):
        threading.Thread(target=run, daemon=True).start()
    bad = 0
    for _ in range(children):
        time.sleep(moments.random() * 0.02)
        bad += forked(use) != 0
    os._exit(bad)
""")


def _at_night(*case: object) -> object:
    return pytest.param(*case, marks=pytest.mark.nightly)


@pytest.mark.parametrize(
    ("program", "children", "tape"),
    [
        (WHILE_OTHERS_DERIVE, 2, "off"),
        _at_night(WHILE_KERNELS_RUN, 3, "now"),
        *(_at_night(WHILE_OTHERS_DERIVE, 60, tape) for tape in ("off", "now")),
        *(_at_night(WHILE_KERNELS_RUN, 200, tape) for tape in ("off", "now")),
    ],
    ids=lambda case: {WHILE_OTHERS_DERIVE: "deriving", WHILE_KERNELS_RUN: "kernels"}.get(case),
)
def test_children_forked_at_random_moments_serve(program: str, children: int, tape: str, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(program)
    environment = {**os.environ, "OPWRIGHT_TAPE": tape}
    done = run(str(script), str(children), "1", env=environment, timeout=1200)

    assert done.returncode == 0, f"{done.returncode} of {children} children failed\n{done.stderr}"
