"""Model and example arguments → Exported."""

from __future__ import annotations

import copy
import inspect
import re
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.utils._pytree import tree_leaves

from opwright.deployment.programs.calls import find_calls
from opwright.deployment.programs.expected import run_eagerly
from opwright.deployment.programs.exported import Exported
from opwright.errors import DeploymentUnsupported, OpwrightError, Place
from opwright.ir.names.identifiers import ascii_spelling
from opwright.package import PACKAGE

_TORCH = Path(torch.__file__).parent


class _Called(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        """Call it."""
        return self.function(*args)


def export(model: Callable[..., Any], args: Sequence[Any], dynamic_shapes: Any = None) -> Exported:
    """Export a model, and find the operators that it calls.

    Args:
        model: A module, or a function; it is not changed.
        args: Its example arguments: tensors on the processor, and structures of them.
        dynamic_shapes: As `torch.export.export` takes them: which sizes of the arguments may change.

    Raises:
        DeploymentUnsupported: If no program can be made of it, or a part of it cannot leave Python.
    """
    args = _checked(args)
    module = model if isinstance(model, nn.Module) and not _takes_anything(model) else _Called(model)
    _refuse_devices(module, args)
    expected, allowed = run_eagerly(module, args)  # operators learn at their first call how many tensors they return
    program = _program(module, args, dynamic_shapes if module is model else _by_position(model, args, dynamic_shapes))
    _refuse_what_stays(program)
    leaves = tuple(tree_leaves(args))
    try:
        calls = find_calls(program, leaves)
    except DeploymentUnsupported as refusal:
        raise refusal.again(_place_of(model)) from None
    return Exported(_name_of(model), program, calls, leaves, expected, allowed)


def _takes_anything(module: nn.Module) -> bool:
    """Whether it has a forward of `*args`, as modules with kernels of their own have."""
    parameters = inspect.signature(module.forward).parameters.values()
    return any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)


def _by_position(model: Callable[..., Any], args: tuple[Any, ...], dynamic_shapes: Any) -> Any:
    """What `torch.export` calls the arguments of a function that takes them as `*args`."""
    if isinstance(dynamic_shapes, dict):
        written = model.forward if isinstance(model, nn.Module) else model
        names = [*inspect.signature(getattr(written, "reference", written)).parameters][: len(args)]
        dynamic_shapes = tuple(dynamic_shapes.get(name) for name in names)
    return None if dynamic_shapes is None else (tuple(dynamic_shapes),)


def _checked(args: Sequence[Any]) -> tuple[Any, ...]:
    if not isinstance(args, tuple | list):
        fact = f"the example arguments are of type {type(args).__name__}"
        raise DeploymentUnsupported(fact, hint="give a tuple of them, such as (x,)")
    for leaf in tree_leaves(tuple(args)):
        if not isinstance(leaf, torch.Tensor):
            raise DeploymentUnsupported(
                f"one of the example arguments is {leaf!r}, and programs take tensors",
                hint="deploy a function that sets it: lambda x: model(x, 2)",
            )
    return tuple(torch.utils._pytree.tree_map(_dense, tuple(args)))


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone(memory_format=torch.preserve_format).requires_grad_(tensor.requires_grad)


def _refuse_devices(module: nn.Module, args: Sequence[Any]) -> None:
    for tensor in (*module.parameters(), *module.buffers(), *tree_leaves(args)):
        if tensor.device.type != "cpu":
            raise DeploymentUnsupported(
                f"the model or an argument is on {tensor.device}, and deployments are for processors",
                hint="move the model and its example arguments to the processor: model.cpu()",
            )


def _program(module: nn.Module, args: tuple[Any, ...], dynamic_shapes: Any) -> ExportedProgram:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch, about itself
            return torch.export.export(_unshared(module), args, dynamic_shapes=dynamic_shapes)
    except OpwrightError:
        raise
    except Exception as error:
        said = re.sub(r"\s+", " ", str(error).strip().split("\n\n")[0])[:300]
        raise DeploymentUnsupported(
            f"torch.export makes no program of the model: {type(error).__name__}: {said}",
            place=_place(error),
            hint="keep values of tensors out of Python, and say in dynamic_shapes= which sizes may change",
        ) from error


def _unshared(module: nn.Module) -> nn.Module:
    """Exporting may leave attributes behind in a module; a copy can have them."""
    try:
        return copy.deepcopy(module)
    except Exception:  # a module that holds what cannot be copied
        return module


def _place_of(model: Callable[..., Any]) -> Place | None:
    """Where a model is written."""
    try:
        written = type(model) if isinstance(model, nn.Module) else getattr(model, "reference", model)
        return Place(inspect.getsourcefile(written) or "", inspect.getsourcelines(written)[1])
    except (OSError, TypeError):  # it has no file
        return None


def _place(error: BaseException) -> Place | None:
    frames = [(frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(error.__traceback__)]
    theirs = [(f, n) for f, n in frames if Path(f).is_file() and not _is_library(Path(f))]
    return Place(*theirs[-1]) if theirs else None


def _is_library(file: Path) -> bool:
    return file.is_relative_to(_TORCH) or file.is_relative_to(PACKAGE)


def _refuse_what_stays(program: ExportedProgram) -> None:
    for spec in program.graph_signature.input_specs:
        if spec.kind in (InputKind.CUSTOM_OBJ, InputKind.TOKEN):
            raise DeploymentUnsupported(
                f"the program takes {spec.arg.name}, which is no tensor", hint="keep such objects out of the model"
            )
    for mutated in _mutated(program):
        raise DeploymentUnsupported(
            f"the model changes {mutated} in its forward, and programs change nothing yet",
            hint="call model.eval() first, or return the new value",
        )


def _mutated(program: ExportedProgram) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        signature = program.run_decompositions({}).graph_signature  # which has all changes behind the graph
    yield from signature.buffers_to_mutate.values()
    yield from signature.user_inputs_to_mutate.values()
    yield from getattr(signature, "parameters_to_mutate", {}).values()


def _name_of(model: Callable[..., Any]) -> str:
    """An identifier in lower case: the name of the function, or of the module's class."""
    name = getattr(model, "__name__", None) or type(model).__name__
    if isinstance(model, nn.Module):
        name = next((c.__name__ for c in type(model).__mro__ if not c.__module__.startswith("opwright.")), name)
    found = re.sub(r"\W+", "_", ascii_spelling(name)).strip("_").lower()
    return found if found.isidentifier() else "model"
