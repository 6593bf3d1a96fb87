"""Between processes: what was derived under one default dtype of torch is found under that one alone."""

import json
import os
import textwrap

import pytest

from tests.keeping_compiler import keeping_compiler
from tests.quick_compiler import OPTIMIZING_NOTHING
from tests.suite.warm_python import run

pytestmark = pytest.mark.seconds(60)  # some processes import PyTorch

PROGRAM = textwrap.dedent("""
    import json, sys
    import torch, opwright
    from torch import Tensor

    pipeline = sys.modules["opwright.operators.base"]
    derived = []
    derive = pipeline.BaseOperator._derive
    pipeline.BaseOperator._derive = lambda self, *a, **k: derived.append(self.name) or derive(self, *a, **k)

    @opwright.operator
    def softened(n: Tensor, x: Tensor) -> Tensor:
        return torch.tanh(x + n / 3) * torch.tensor(0.1)

    torch.set_default_dtype(getattr(torch, sys.argv[1]))
    n, x = torch.arange(6), torch.ones(6, dtype=torch.float64, requires_grad=True)
    result = softened(n, x)
    expected = softened.reference(n, x)
    found = [result, *torch.autograd.grad(result.sum(), x, create_graph=True)]
    right = [expected, *torch.autograd.grad(expected.sum(), x, create_graph=True)]
    tolerance = 1e-14 if sys.argv[1] == "float64" else 1e-6
    torch.testing.assert_close(found, right, rtol=tolerance, atol=0)
    assert torch.equal(softened(n, x), softened(n, x))
    print(json.dumps([softened.last_rung, len(derived)]))
""")


def test_records_are_for_one_default_dtype(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {
        **os.environ,
        "OPWRIGHT_CACHE": str(tmp_path / "cache"),
        "CXX": keeping_compiler(OPTIMIZING_NOTHING),
        "OPWRIGHT_TAPE": "off",
    }
    found = []
    for default in ("float32", "float64", "float32", "float64"):
        done = run(str(program), default, env=environment)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert found == [["cpp", 2], ["cpp", 2], ["cpp", 0], ["cpp", 0]]
