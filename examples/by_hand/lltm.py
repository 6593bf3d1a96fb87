"""LLTM, its C++ written by hand over `torch::Tensor` (`lltm.cpp`), and its cell as kernels for the CPU and for CUDA.

opwright check examples/by_hand/lltm.py:lltm_cell

The product is left to the library; what is written by hand is the element-wise cell.
"""

import torch
import torch.nn.functional as F

import opwright


@opwright.operator(name="by_hand::lltm_cell", samples=opwright.shapes("B 3*S", "B S", B=(16, 64), S=(8, 128)))
def lltm_cell(gates: torch.Tensor, old_cell: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The element-wise part: three gates and the old cell in, the new hidden state and cell out."""
    i, o, g = gates.chunk(3, dim=-1)
    cell = old_cell + F.elu(g) * torch.sigmoid(i)
    return torch.tanh(cell) * torch.sigmoid(o), cell


@opwright.operator(
    name="by_hand::lltm",
    samples=opwright.shapes("B F", "B S", "B S", "3*S F+S", "3*S", B=(16, 64), F=(32, 1024), S=(8, 128)),
)
def lltm(
    x: torch.Tensor, old_hidden: torch.Tensor, old_cell: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """One whole step."""
    gates = F.linear(torch.cat([old_hidden, x], dim=1), weight, bias)
    i, o, g = gates.chunk(3, dim=-1)
    cell = old_cell + F.elu(g) * torch.sigmoid(i)
    return torch.tanh(cell) * torch.sigmoid(o), cell


lltm.implement(
    "cpp",
    sources=["lltm.cpp"],
    forward="lltm_forward",
    backward="lltm_backward",
    results=("hidden", "cell"),
    saved=("joined", "gates"),
)
lltm_cell.implement("cpp", sources=["lltm_cell.cpp"], forward="lltm_cell_forward", backward="lltm_cell_backward")
lltm_cell.implement("cuda", sources=["lltm_cell.cu"], forward="lltm_cell_forward", backward="lltm_cell_backward")
