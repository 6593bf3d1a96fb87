"""The memory that the LLTM cell keeps alive between forward and backward.

python benchmarks/saved_bytes.py [--json FILE]

Counted by `torch.autograd.graph.saved_tensors_hooks`, each storage once, against the bytes of the inputs plus one
output.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from example_operators import example_operator
from scorecard import Options, Row, Scorecard, Target, run_script

SIZES = ((16, 128), (64, 128), (256, 1024), (1024, 4096))


def measure(options: Options) -> Scorecard:
    """Count for the operator and for eager."""
    rows = [_row(batch, state) for batch, state in (SIZES[:1] if options.quick else SIZES)]
    shares = [row.figures["share of the bound"] for row in rows]
    most = max(share for share in shares if share is not None)
    return Scorecard(
        "LLTM cell, saved for backward, float32; bytes",
        rows,
        [Target("saved bytes / (inputs + one output), at most", most, "<=", 1.0)],
    )


def saved_bytes(function: Callable[..., Any], arguments: list[torch.Tensor]) -> int:
    """Call a function a second time and count the bytes of the storages that its graph keeps."""
    function(*arguments)
    storages: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        outputs = function(*arguments)  # alive while counting, so that no address is used twice
    del outputs
    return sum(storages.values())


def _row(batch: int, state: int) -> Row:
    cell = example_operator("lltm_cell")
    arguments = [torch.ones(batch, size, requires_grad=True) for size in (3 * state, state)]
    inputs = sum(argument.nbytes for argument in arguments)
    output = batch * state * arguments[0].itemsize
    own = saved_bytes(cell, arguments)
    assert cell.last_rung == "cpp", f"served by {cell.last_rung}"
    figures = {
        "opwright": own,
        "eager": saved_bytes(cell.reference, arguments),
        "inputs": inputs,
        "one output": output,
        "share of the bound": own / (inputs + output),
    }
    return Row(f"{batch} × {state}", figures)


if __name__ == "__main__":
    run_script(measure, __doc__)
