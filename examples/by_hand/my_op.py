"""z = 3x - y, its C++ written by hand over torch's stable headers (`my_op.cpp`) and registered at torch's dispatcher.

opwright check examples/by_hand/my_op.py
"""

import torch

import opwright


@opwright.operator(name="by_hand::my_op", samples=opwright.shapes("B S", "B S", B=(4, 64), S=(5, 128)))
def my_op(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Three times x less y, for tensors of one size."""
    if x.shape != y.shape:
        raise ValueError(f"my_op takes tensors of one size, and was given {tuple(x.shape)} and {tuple(y.shape)}")
    return 3 * x - y


my_op.implement(
    "cpp",
    sources=["my_op.cpp"],
    forward="by_hand_cpp::my_op",
    backward="by_hand_cpp::my_op_backward",
    dtypes=(torch.float32, torch.float64),
)
