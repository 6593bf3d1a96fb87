"""
A model without Python
======================

A model with an operator in it becomes a folder with a library and a program in C++. Here the program is
built, runs in an empty environment, and is compared with the model.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import torch

import opwright


@opwright.operator
def gated_for_deployment(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(y)


class Gated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.both = torch.nn.Linear(16, 64)
        self.last = torch.nn.Linear(32, 1)

    def forward(self, x):
        return self.last(gated_for_deployment(*self.both(x).chunk(2, dim=-1)))


# %%
# ``check`` builds the program with CMake and runs it. TorchScript is the format that builds fastest.

torch.manual_seed(0)
model = Gated().eval()
folder = Path(tempfile.mkdtemp()) / "deployed"
deployment = opwright.deploy(model, (torch.randn(8, 16),), to="torchscript", at=folder)
print(deployment.check())

sizes = {path.name: path.stat().st_size / 1024 for path in sorted(folder.iterdir()) if path.is_file()}
figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
axis.barh(list(sizes), list(sizes.values()), log=True)
axis.set(xlabel="KiB", title="what is in the folder")
figure.show()
