"""Wheels of operators whose parameters and variables are called like words of emitted code."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.deployment.wheels.conftest import PACKAGE, built, installed

MISTAKABLE = Path(__file__).parent / "shipped/mistakable.py"
JUDGE = f"""
import torch, {PACKAGE} as package

def reference(stack, tensors, end, number):
    begin = stack.mean(-1, keepdim=True)
    return torch.softmax((stack - begin) * tensors * number, -1) * end

given = [torch.randn(shape, requires_grad=True) for shape in ((4, 24), (24,), (4, 1))]
for number in (0.5, 1.5):
    made, expected = package.mistakable(*given, number=number), reference(*given, number)
    cotangents = torch.randn_like(made)
    torch.testing.assert_close(made, expected)
    gradients = (torch.autograd.grad(result, given, cotangents) for result in (made, expected))
    torch.testing.assert_close(*gradients)
    print(package.mistakable.last_rung)
"""


@pytest.mark.nightly
def test_a_wheel_with_mistakable_names_is_right(tmp_path):
    wheel = built([f"{MISTAKABLE}:mistakable"], tmp_path)
    site = installed(wheel["path"], tmp_path / "site")
    alone = {"PATH": "", "PYTHONPATH": str(site), "HOME": str(site)}
    done = subprocess.run([sys.executable, "-c", JUDGE], capture_output=True, text=True, env=alone, check=False)
    assert (done.stdout, done.stderr) == ("cpp\ncpp\n", "")
