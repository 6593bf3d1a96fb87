"""What one process derived of a module, another one finds."""

import os
import textwrap

import pytest

from tests.suite.kept_libraries import another_cache
from tests.suite.warm_python import run

PROGRAM = textwrap.dedent("""
    import torch, opwright
    from torch import nn
    from opwright.operators.base import BaseOperator

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.norm = nn.Linear(4, 3), nn.BatchNorm1d(3)

        def forward(self, x):
            return torch.tanh(self.norm(self.linear(x)))

    derived, derive = [], BaseOperator._derive
    BaseOperator._derive = lambda self, *a, **k: derived.append(self.name) or derive(self, *a, **k)
    torch.manual_seed(0)
    plain, block = Block(), Block()
    block.load_state_dict(plain.state_dict())
    x, served = torch.randn(6, 4), opwright.module(block)
    for module in (plain, served):
        module(x).sum().backward()
    assert served.last_rung == "cpp"
    torch.testing.assert_close(served.state_dict(), plain.state_dict())
    torch.testing.assert_close(served.linear.weight.grad, plain.linear.weight.grad)
    print(len(derived))
""")


@pytest.mark.nightly
def test_a_module_that_changes_buffers_is_not_derived_again(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "OPWRIGHT_CACHE": str(another_cache())}
    counts = []
    for _ in range(2):
        done = run(str(program), env=environment)
        assert done.returncode == 0, done.stderr
        counts.append(done.stdout.strip())
    assert counts == ["2", "0"]  # without the change of the buffers, then with it; nothing


REFUSED = textwrap.dedent("""
    import torch, opwright
    from torch import nn
    from opwright.operators.base import BaseOperator

    class Block(nn.Module):
        def forward(self, x):
            return x * 2 if x.sum() > 0 else x * 3

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Block() for _ in range(3)])

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return x if x.sum() > 0 else -x

    derived, derive = [], BaseOperator._derive_for
    BaseOperator._derive_for = lambda self, *a, **k: derived.append(self.name) or derive(self, *a, **k)
    served, x = opwright.module(Model()), torch.ones(6)
    torch.testing.assert_close(served(x), 8 * x)
    print(len(derived), served.explain().count("value"))
""")


@pytest.mark.nightly
def test_what_is_refused_is_not_derived_again(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(REFUSED)
    environment = {**os.environ, "OPWRIGHT_CACHE": str(another_cache()), "OPWRIGHT_QUIET": "1", "OPWRIGHT_STRICT": "0"}
    told = []
    for _ in range(2):
        done = run(str(program), env=environment)
        assert done.returncode == 0, done.stderr
        told.append(done.stdout.split())
    assert [counts[0] for counts in told] == ["2", "0"]  # the model and one of its blocks; nothing
    assert told[0][1] == told[1][1] != "0"


LIBRARY = """
import pytest
import torch
from torch import nn

TABLE = {"tanh": lambda x: torch.tanh(x)}

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)
    def forward(self, x):
        return TABLE["tanh"](self.linear(x)) * 2
"""
OF_LIBRARY = textwrap.dedent("""
    import sys
    sys.path.insert(0, sys.argv[1])
    import torch, opwright
    import library_with_a_block as library
    from opwright.operators.base import BaseOperator

    derived, derive = [], BaseOperator._derive
    BaseOperator._derive = lambda self, *a, **k: derived.append(self.name) or derive(self, *a, **k)
    torch.manual_seed(0)
    for block in (library.Block(), library.Block()):
        x, served = torch.randn(6, 4), opwright.module(block)
        torch.testing.assert_close(served(x), block(x))
        assert served.last_rung == "cpp"
    print(len(derived))
""")


def test_a_module_of_a_library_is_not_derived_again(tmp_path):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "library_with_a_block.py").write_text(LIBRARY)
    program = tmp_path / "program.py"
    program.write_text(OF_LIBRARY)
    environment = {**os.environ, "OPWRIGHT_CACHE": str(another_cache())}
    counts = []
    for _ in range(2):
        done = run(str(program), str(folder), env=environment)
        assert done.returncode == 0, done.stderr
        counts.append(done.stdout.strip())
    assert counts == ["2", "0"]  # to see what the first block runs, then with that; nothing
