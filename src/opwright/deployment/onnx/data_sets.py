"""Inputs and expected results beside a model, as ONNX's own test data: `test_data_set_0/input_0.pb`, ….

The first are those of the examples. If sizes may change, a second set has others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import torch
from torch import nn
from torch.fx import GraphModule, Interpreter
from torch.utils._pytree import tree_unflatten

from opwright.deployment.programs.expected import run_eagerly
from opwright.deployment.programs.exported import Exported
from opwright.errors import OpwrightError
from opwright.operators.registry import at_dispatcher


@dataclass(frozen=True, slots=True)
class DataSet:
    """Inputs, what eager returns for them, and how far each result may be from it."""

    inputs: tuple[torch.Tensor, ...]
    expected: tuple[torch.Tensor, ...]
    allowed: tuple[float, ...]


def data_sets(exported: Exported) -> list[DataSet]:
    """Make those of a program: for its examples, and for other sizes where they may change."""
    first = DataSet(exported.inputs, exported.expected, exported.allowed)
    other = _with_other_sizes(exported)
    return [first, other] if other else [first]


def _with_other_sizes(exported: Exported) -> DataSet | None:
    program: Any = exported.program
    names = set(program.graph_signature.user_inputs)
    shapes = [n.meta["val"].shape for n in program.graph.nodes if n.op == "placeholder" and n.name in names]
    if all(isinstance(size, int) for shape in shapes for size in shape):
        return None
    for factor in (2, 3, 4):  # sizes may have to be multiples of something
        inputs = tuple(map(lambda t, s: _enlarged(t, s, factor), exported.inputs, shapes))
        try:
            args, _ = tree_unflatten(inputs, program.call_spec.in_spec)
            return DataSet(inputs, *run_eagerly(_ByReferences(program.module()), tuple(args)))
        except (OpwrightError, RuntimeError, AssertionError, ValueError, TypeError):
            continue
    return None


class _ByReferences(nn.Module):
    """A program with the references of its operators in their place."""

    def __init__(self, program: GraphModule) -> None:
        super().__init__()
        self.program = program

    def forward(self, *args: Any) -> Any:
        """Run it."""
        return _Interpreter(self.program).run(*args)


class _Interpreter(Interpreter):
    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        found = at_dispatcher(target)
        if found is None:
            return super().call_function(target, args, kwargs)
        return found.signature.positional(found.operator.reference)(*found.signature.bind(args, kwargs))


def _enlarged(tensor: torch.Tensor, sizes: Sequence[Any], factor: int) -> torch.Tensor:
    """The tensor again and again along the dimensions whose sizes may change."""
    times = [1 if isinstance(size, int) else factor for size in sizes]
    return tensor.repeat(times) if times else tensor.clone()


def write_data_sets(folder: Path, sets: Sequence[DataSet]) -> None:
    """Write them into a folder."""
    for number, each in enumerate(sets):
        home = folder / f"test_data_set_{number}"
        home.mkdir()
        for kind, tensors in (("input", each.inputs), ("output", each.expected)):
            for place, tensor in enumerate(tensors):
                proto = ir.to_proto(ir.tensor(tensor.detach().contiguous(), name=f"{kind}_{place}"))
                (home / f"{kind}_{place}.pb").write_bytes(proto.SerializeToString())


def read_data_sets(folder: Path) -> Iterator[tuple[list[onnx.TensorProto], list[onnx.TensorProto]]]:
    """Read the inputs and expected results of each."""
    for home in sorted(folder.glob("test_data_set_*")):
        yield _read(home, "input"), _read(home, "output")


def _read(home: Path, kind: str) -> list[onnx.TensorProto]:
    count = len(list(home.glob(f"{kind}_*.pb")))
    return [onnx.load_tensor(home / f"{kind}_{place}.pb") for place in range(count)]
