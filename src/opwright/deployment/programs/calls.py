"""The operators that a program calls, with the arguments that they get."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule, Interpreter, Node

from opwright.deployment.programs.exported import OperatorCall
from opwright.errors import DeploymentUnsupported, Place
from opwright.operators.registry import at_dispatcher
from opwright.package import PACKAGE

OF_TORCH = ("aten", "prims", "prim", "quantized", "_c10d_functional")


def find_calls(program: ExportedProgram, inputs: Sequence[torch.Tensor]) -> tuple[OperatorCall, ...]:
    """Find them, and run the program for the arguments of each.

    Args:
        program: The program.
        inputs: Its user inputs, flat.

    Raises:
        DeploymentUnsupported: If an operation is neither PyTorch's nor an operator of opwright, or an operator is
            called in a branch or a loop, which is a graph of its own.
    """
    _refuse_calls_inside(program)
    nodes = [node for node in program.graph.nodes if isinstance(node.target, OpOverload) and not _is_of_torch(node)]
    for node in nodes:
        if at_dispatcher(node.target) is None:
            raise DeploymentUnsupported(
                f"the model calls {node.target.name()}, which is no operator of opwright",
                place=place_of_node(node),
                hint="write it in PyTorch's operations under @opwright.operator, or use these themselves",
            )
    recorded = _record(program, nodes, inputs)
    others = [_record(program, nodes, shrunk) for shrunk in sizes_of_one(program, inputs) if _takes(program, shrunk)]
    return tuple(_call(node, recorded[node], [other[node] for other in others if node in other]) for node in nodes)


def _refuse_calls_inside(program: ExportedProgram) -> None:
    for inner in program.graph_module.modules():
        if not isinstance(inner, GraphModule) or inner is program.graph_module:
            continue
        for node in inner.graph.nodes:
            if isinstance(node.target, OpOverload) and not _is_of_torch(node):
                raise DeploymentUnsupported(
                    f"the model calls {node.target.name()} in a branch or a loop of torch.cond, while_loop or map",
                    place=place_of_node(node),
                    hint="call it outside of these, or write PyTorch's operations inside of them",
                )


def place_of_node(node: Node) -> Place | None:
    """The line of the user's source that a node comes from, if its trace was kept."""
    lines = [line.strip() for line in str(node.meta.get("stack_trace") or "").splitlines()]
    split = [line.removeprefix('File "').partition('", line ') for line in lines if line.startswith('File "')]
    theirs = [(file, rest) for file, _, rest in split if file[:1] != "<" and not Path(file).is_relative_to(PACKAGE)]
    return Place(theirs[-1][0], int(theirs[-1][1].partition(",")[0])) if theirs else None


def _is_of_torch(node: Node) -> bool:
    return isinstance(node.target, OpOverload) and node.target.namespace in OF_TORCH


def _call(node: Node, given: tuple[Any, ...], others: Sequence[tuple[Any, ...]]) -> OperatorCall:
    assert isinstance(node.target, OpOverload)
    found = at_dispatcher(node.target)
    assert found is not None
    outputs = len(node.target._schema.returns)
    return OperatorCall(node, found.operator, found.signature, given, tuple(others), outputs)


class _Recorder(Interpreter):
    """Runs a graph, and keeps the arguments of some of its nodes."""

    def __init__(self, program: ExportedProgram, nodes: Sequence[Node]) -> None:
        super().__init__(program.graph_module)
        self._wanted = set(nodes)
        self.found: dict[Node, tuple[Any, ...]] = {}

    def run_node(self, n: Node) -> Any:
        if n in self._wanted:
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            found = at_dispatcher(n.target)
            assert found is not None
            self.found[n] = tuple(_detached(each) for each in found.signature.bind(tuple(args), dict(kwargs)))
        return super().run_node(n)


def _detached(value: Any) -> Any:
    return value.detach() if isinstance(value, torch.Tensor) else value


def _record(
    program: ExportedProgram, nodes: Sequence[Node], inputs: Sequence[torch.Tensor]
) -> dict[Node, tuple[Any, ...]]:
    lifted = iter(inputs)
    signature = program.graph_signature
    given = []
    for spec in signature.input_specs:
        name = spec.target
        if name is None:
            given.append(next(lifted))
        elif name in program.state_dict:
            given.append(program.state_dict[name])
        else:
            given.append(program.constants[name])
    recorder = _Recorder(program, nodes)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # eager has warned
        recorder.run(*given)
    return recorder.found


def sizes_of_one(program: ExportedProgram, inputs: Sequence[torch.Tensor]) -> Iterator[tuple[torch.Tensor, ...]]:
    """The inputs with every size that may change at one, if it may be one: kernels for sizes of one are others."""
    users = [node for node in program.graph.nodes if node.op == "placeholder" and node.name in _user_inputs(program)]
    sizes = [list(node.meta["val"].shape) for node in users]
    symbols = {str(size) for shape in sizes for size in shape if not isinstance(size, int)}
    least = {str(symbol): int(found.lower) for symbol, found in program.range_constraints.items()}
    if not symbols or any(least.get(symbol, 2) > 1 for symbol in symbols):
        return
    yield tuple(
        tensor[tuple(slice(None) if isinstance(size, int) else slice(0, 1) for size in shape)].clone()
        for tensor, shape in zip(inputs, sizes, strict=True)
    )


def _takes(program: ExportedProgram, inputs: Sequence[torch.Tensor]) -> bool:
    try:
        _record(program, [], inputs)
    except Exception:  # the model takes no such sizes
        return False
    return True


def _user_inputs(program: ExportedProgram) -> set[str]:
    return {str(name) for name in program.graph_signature.user_inputs}
