"""Models that are TorchScript already: kept as they are, with their calls found, or converted for other formats."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch._ops import OpOverload
from torch.fx import Graph
from torch.utils._python_dispatch import TorchDispatchMode

from opwright.deployment.programs.calls import OF_TORCH, place_of_node
from opwright.deployment.programs.exported import OperatorCall
from opwright.deployment.programs.settled_scripts import called_overload, every_node
from opwright.errors import DeploymentUnsupported
from opwright.operators.registry import at_dispatcher

_INSTEAD = "deploy the module that it was scripted from"


def is_script(model: Any) -> bool:
    """Whether a model is TorchScript: a module or a function."""
    return isinstance(model, torch.jit.ScriptModule | torch.jit.ScriptFunction)


def copied(model: Any) -> Any:
    """A copy of it as a `torch.jit.ScriptModule`, as a file of it would be loaded.

    Raises:
        DeploymentUnsupported: If it cannot be saved.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # TorchScript is deprecated, and still what many load
            return torch.jit.load(io.BytesIO(model.save_to_buffer()))
    except RuntimeError as error:
        raise DeploymentUnsupported(
            f"TorchScript does not save the model: {_first_line(error)}", hint=_INSTEAD
        ) from error


def parameters_of(script: Any) -> list[str]:
    """The names of its parameters."""
    return [argument.name for argument in script.forward.schema.arguments[1:]]


def converted(script: Any, args: tuple[Any, ...]) -> nn.Module:
    """It as a module that `torch.export` takes.

    Raises:
        DeploymentUnsupported: If torch has no conversion for it.
    """
    from torch._export.converter import TS2EPConverter  # imports the compiler

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return TS2EPConverter(script, args).convert().module()
    except Exception as error:
        raise DeploymentUnsupported(
            f"torch.export does not convert the scripted model: {type(error).__name__}: {_first_line(error)}",
            hint=f'{_INSTEAD}, or deploy to "torchscript", which keeps it as it is',
        ) from error


def calls_of(script: Any, examples: Sequence[tuple[torch.Tensor, ...]]) -> tuple[OperatorCall, ...]:
    """The operators that a scripted model calls, with the arguments that they get.

    Args:
        script: The model.
        examples: Its arguments; the first are what it is deployed for, the others are tried.

    Raises:
        DeploymentUnsupported: If it calls an operation that is neither PyTorch's nor an operator of opwright, or an
            operator where the examples do not lead; if it changes its state; if it takes or returns structures.
    """
    graph = script.inlined_graph
    places = {node.kind(): node.sourceRange() for node in every_node(graph) if _is_foreign(node.kind())}
    overloads = {kind: called_overload(kind) for kind in places}
    for kind, overload in overloads.items():
        if overload is None or at_dispatcher(overload) is None:
            raise DeploymentUnsupported(
                f"the model calls {kind}, which is no operator of opwright",
                place=place_of_node(_node(overload, places[kind])),
                hint="write it in PyTorch's operations under @opwright.operator, or use these themselves",
            )
    recorder, tried = _Recorder(overloads.values()), copied(script)
    with torch.no_grad(), recorder:
        _refuse_structures(examples[0], tried(*examples[0]))
        _refuse_changes(script, tried)
        for other in examples[1:]:
            try:
                tried(*other)
            except Exception:  # the model takes no such sizes
                continue
    for kind, overload in overloads.items():
        if all(found is not overload for found, _ in recorder.found):
            raise DeploymentUnsupported(
                f"the model calls {kind} only for other arguments than the examples",
                place=place_of_node(_node(overload, places[kind])),
                hint="give example arguments with which it is called",
            )
    return tuple(_call(*found, places) for found in recorder.found)


def _refuse_structures(args: Sequence[Any], returned: Any) -> None:
    for value in (*args, *(returned if isinstance(returned, tuple) else (returned,))):
        if not isinstance(value, torch.Tensor):
            raise DeploymentUnsupported(
                f"the scripted model takes or returns a {type(value).__name__}, and programs take and return tensors",
                hint="give it a forward of tensors that returns a tensor or a tuple of tensors",
            )


def _refuse_changes(script: Any, tried: Any) -> None:
    after = tried.state_dict()
    for name, before in script.state_dict().items():
        if not torch.equal(before, after[name]):
            raise DeploymentUnsupported(
                f"the model changes {name} in its forward, and programs change nothing yet",
                hint="call model.eval() first, or return the new value",
            )


def _call(overload: OpOverload, given: tuple[Any, ...], places: dict[str, str]) -> OperatorCall:
    found = at_dispatcher(overload)
    assert found is not None
    node = _node(overload, places[overload._schema.name])
    return OperatorCall(node, found.operator, found.signature, given, (), len(overload._schema.returns))


def _node(target: Any, source: str) -> Any:
    """A node for a call, which says where it is written."""
    node = Graph().call_function(target or _node)
    node.meta["stack_trace"] = source
    return node


def _is_foreign(kind: str) -> bool:
    return kind.split("::")[0] not in OF_TORCH


class _Recorder(TorchDispatchMode):
    """Keeps the arguments of calls of some operators, each kind of arguments once."""

    def __init__(self, overloads: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's
        self._wanted = set(overloads)
        self._known: set[Any] = set()
        self.found: list[tuple[OpOverload, tuple[Any, ...]]] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = at_dispatcher(function) if function in self._wanted else None
        if found is not None:
            given = tuple(found.signature.bind(args, kwargs or {}))
            kind = (function, *(_kind(value) for value in given))
            if kind not in self._known:
                self._known.add(kind)
                self.found.append((function, tuple(_kept(value) for value in given)))
        return function(*args, **(kwargs or {}))


def _kind(value: Any) -> Any:
    return (value.dtype, tuple(value.shape)) if isinstance(value, torch.Tensor) else repr(value)


def _kept(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "it says nothing")
