"""The references of a program's operators as graphs of PyTorch's operations, for every dtype that they take."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.export import Dim, ExportedProgram
from torch.utils._pytree import tree_leaves

from opwright.deployment.programs.exported import OperatorCall

_FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
_LARGEST_DIFFERENCE = 0.1  # of a half type; a graph that is wrong for a size is wrong by more


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceGraph:
    """A reference, exported for one kind of call.

    Attributes:
        program: The graph, before decompositions, so that PyTorch records its gradients as eager's.
        dtypes: The dtypes of the tensors that it computes the same for.
        constants: The arguments that are no tensors, by position.
        least: The smallest value of a size that may change for which the graph was seen to be right.
    """

    program: ExportedProgram
    dtypes: tuple[tuple[torch.dtype, ...], ...]
    constants: dict[int, Any]
    least: int


def reference_graphs(calls: Sequence[OperatorCall]) -> tuple[ReferenceGraph, ...]:
    """Export the reference of an operator for every kind of call that a program makes; none where it cannot be."""
    found: dict[Any, ReferenceGraph] = {}
    for call in calls:
        for arguments in (call.arguments, *call.others):
            for given in _in_every_dtype(arguments):
                graph = _exported(call, given)
                if graph is None:
                    continue
                key = (repr(sorted(graph.constants.items())), _text(graph.program))
                earlier = found.get(key)
                dtypes = dict.fromkeys((*(earlier.dtypes if earlier else ()), *graph.dtypes))
                least = max(graph.least, earlier.least if earlier else 0)
                found[key] = ReferenceGraph((earlier or graph).program, tuple(dtypes), graph.constants, least)
    return tuple(found.values())


class _Reference(nn.Module):
    """A reference as a function of the tensors among its arguments."""

    def __init__(self, call: OperatorCall, arguments: Sequence[Any]) -> None:
        super().__init__()
        self._function = call.signature.positional(call.operator.reference)
        self._arguments = tuple(arguments)

    def forward(self, *tensors: Any) -> Any:
        """Call it."""
        given = iter(tensors)
        return self._function(*[next(given) if isinstance(a, torch.Tensor) else a for a in self._arguments])


def _in_every_dtype(arguments: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """The arguments as they are, then with the floating ones of their first floating dtype in every other."""
    yield tuple(arguments)
    floating = [a.dtype for a in arguments if isinstance(a, torch.Tensor) and a.is_floating_point()]
    for dtype in _FLOATS:
        if floating and dtype is not floating[0]:
            yield tuple(_cast(argument, floating[0], dtype) for argument in arguments)


def _cast(argument: Any, before: torch.dtype, after: torch.dtype) -> Any:
    return argument.to(after) if isinstance(argument, torch.Tensor) and argument.dtype is before else argument


def _exported(call: OperatorCall, arguments: Sequence[Any]) -> ReferenceGraph | None:
    tensors = tuple(a for a in arguments if isinstance(a, torch.Tensor))
    module = _Reference(call, arguments)
    sizes = tuple({d: Dim.AUTO for d, size in enumerate(t.shape) if size > 1} for t in tensors)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            expected = module(*tensors)
            with torch.enable_grad():
                program = torch.export.export(module, tensors, dynamic_shapes=(sizes,))
        if not _same(program, module, tensors, expected):
            return None
    except Exception:  # the reference refuses this dtype, or torch.export the reference
        return None
    constants = {p: value for p, value in enumerate(arguments) if not isinstance(value, torch.Tensor)}
    return ReferenceGraph(program, (tuple(t.dtype for t in tensors),), constants, _least(program, module, tensors))


def _least(program: ExportedProgram, module: nn.Module, tensors: Sequence[torch.Tensor]) -> int:
    """The smallest size for which the graph does what the reference does; 2 is what the trace was made for."""
    for least in (1, 0):
        try:
            given = [_resized(node, t, least) for node, t in zip(inputs_of(program), tensors, strict=True)]
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of such sizes
                expected = module(*given)
        except Exception:  # such sizes are an error
            continue
        try:
            if not _same(program, module, given, expected):
                return least + 1
        except Exception:
            return least + 1
    return 0


def inputs_of(program: ExportedProgram) -> list[torch.fx.Node]:
    """The nodes of the tensors that a program takes."""
    names = {str(name) for name in program.graph_signature.user_inputs}
    return [node for node in program.graph.nodes if node.op == "placeholder" and node.name in names]


def _resized(node: torch.fx.Node, tensor: torch.Tensor, least: int) -> torch.Tensor:
    sizes = [tensor.shape[d] if isinstance(s, int) else least for d, s in enumerate(node.meta["val"].shape)]
    return tensor[tuple(slice(0, size) for size in sizes)].clone()


def _same(program: ExportedProgram, module: nn.Module, tensors: Sequence[torch.Tensor], expected: Any) -> bool:
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = tree_leaves(_run(program, tensors))
    wanted = tree_leaves(expected)
    return len(made) == len(wanted) and all(
        a.shape == b.shape
        and a.dtype == b.dtype
        and torch.allclose(a.double(), b.double(), _LARGEST_DIFFERENCE, _LARGEST_DIFFERENCE, equal_nan=True)
        for a, b in zip(made, wanted, strict=True)
    )


def _run(program: ExportedProgram, tensors: Sequence[torch.Tensor]) -> Any:
    """Run the graph as it is, without the guards of a trace."""
    constants = [*program.state_dict.values(), *program.constants.values()]
    made: list[Any] = []
    _warning_in_python(lambda: made.append(torch.fx.Interpreter(program.graph_module).run(*constants, *tensors)))
    return made[0]


class _WarningInPython(torch.autograd.Function):
    """Does work inside of a function of PyTorch's: C++ writes warnings of single operations to stderr."""

    @staticmethod
    def forward(ctx: Any, work: Callable[[], object]) -> None:
        work()


_warning_in_python: Callable[[Callable[[], object]], None] = _WarningInPython.apply


def _text(program: ExportedProgram) -> str:
    shapes = [tuple(map(str, node.meta["val"].shape)) for node in inputs_of(program)]
    return f"{program.graph} {shapes}"
