"""Model and example arguments → Exported."""

from __future__ import annotations

import copy
import inspect
import re
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node
from torch.utils._pytree import tree_leaves

from opwright.deployment.programs.calls import find_calls, sizes_of_one
from opwright.deployment.programs.expected import run_eagerly
from opwright.deployment.programs.exported import Exported
from opwright.deployment.programs.scripts import calls_of, converted, copied, is_script, parameters_of
from opwright.deployment.programs.settled_scripts import settle_arguments_of_script
from opwright.errors import DeploymentUnsupported, OpwrightError, Place
from opwright.introspection import signature_of
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


def export(
    model: Callable[..., Any], args: Sequence[Any], dynamic_shapes: Any = None, *, keeps_scripts: bool = False
) -> Exported:
    """Export a model, and find the operators that it calls.

    Args:
        model: A module, or a function; it is not changed.
        args: Its example arguments: tensors on the processor, and structures of them.
        dynamic_shapes: As `torch.export.export` takes them: which sizes of the arguments may change.
        keeps_scripts: Whether a model that is TorchScript stays that.

    Raises:
        DeploymentUnsupported: If no program can be made of it, or a part of it cannot leave Python.
    """
    args = _checked(args)
    name = _name_of(model)
    if is_script(model):
        model = copied(model)
    module = model if isinstance(model, nn.Module) and not _takes_anything(model) else _Called(model)
    _refuse_devices(module, args)
    expected, allowed = _run(module, args)  # operators learn at their first call how many tensors they return
    if is_script(model):
        by_position = _by_position(parameters_of(model), args, dynamic_shapes)
        if keeps_scripts:
            return _kept(name, model, args, by_position, expected, allowed)
        program = _program(_Called(converted(model, args)), args, by_position)
    elif module is model:
        program = _program(module, args, dynamic_shapes)
    else:
        program = _program(module, args, _by_position(_parameters_of(model), args, dynamic_shapes))
    program = _without_transforms(program)
    leaves = tuple(tree_leaves(args))
    try:
        calls = find_calls(program, leaves)
    except DeploymentUnsupported as refusal:
        raise refusal.again(_place_of(model)) from None
    return Exported(name, program, calls, leaves, expected, allowed)


def _run(module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, Any]:
    try:
        return run_eagerly(module, args)
    except OpwrightError:
        raise
    except Exception as error:
        raise DeploymentUnsupported(
            f"the model fails for the example arguments: {_said(error)}",
            place=_place(error),
            hint="give arguments that it takes",
        ) from error


def _takes_anything(module: nn.Module) -> bool:
    """Whether it has a forward of `*args`, as modules with kernels of their own have."""
    if is_script(module):
        return False
    parameters = signature_of(module.forward).parameters.values()
    return any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)


def _parameters_of(model: Callable[..., Any]) -> list[str]:
    written = model.forward if isinstance(model, nn.Module) else model
    return [*signature_of(getattr(written, "reference", written)).parameters]


def _by_position(names: list[str], args: tuple[Any, ...], dynamic_shapes: Any) -> Any:
    """What `torch.export` calls the arguments of a function that takes them as `*args`."""
    if isinstance(dynamic_shapes, dict):
        dynamic_shapes = tuple(dynamic_shapes.get(name) for name in names[: len(args)])
    return None if dynamic_shapes is None else (tuple(dynamic_shapes),)


def _kept(
    name: str,
    script: Any,
    args: tuple[Any, ...],
    dynamic_shapes: Any,
    expected: Sequence[Any],
    allowed: Sequence[float],
) -> Exported:
    """A copied script as it is; the program beside it passes its arguments on, and so has their sizes."""
    program = _program(_Called(lambda *given: given), args, dynamic_shapes)
    settle_arguments_of_script(script)
    calls = calls_of(script, (args, *sizes_of_one(program, args)))
    return Exported(name, program, calls, args, tuple(expected), tuple(allowed), script)


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
        raise DeploymentUnsupported(
            f"torch.export makes no program of the model: {_said(error)}",
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
    if is_script(model):
        return None  # nothing of it is Python
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


def _without_transforms(program: ExportedProgram) -> ExportedProgram:
    """The program; where it transforms functions, as `torch.vmap` does, with their operations in their place.

    Raises:
        DeploymentUnsupported: If it changes something, takes what is no tensor, or torch takes no such transform apart.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            flat = program.run_decompositions({})  # which has all changes behind the graph
    except Exception as error:
        raise DeploymentUnsupported(
            f"torch.export makes a program of the model that does not run: {_said(error)}",
            hint="take gradients inside of it by torch.autograd.grad; torch exports no torch.func.grad",
        ) from error
    _refuse_what_stays(flat)
    return flat if any(_is_transform(node) for node in program.graph.nodes) else program


def _is_transform(node: Node) -> bool:
    return str(getattr(node.target, "__module__", "")).startswith("torch._functorch")


def _refuse_what_stays(program: ExportedProgram) -> None:
    signature = program.graph_signature
    for spec in signature.input_specs:
        if spec.kind in (InputKind.CUSTOM_OBJ, InputKind.TOKEN):
            raise DeploymentUnsupported(
                f"the program takes {spec.arg.name}, which is no tensor", hint="keep such objects out of the model"
            )
    parameters = getattr(signature, "parameters_to_mutate", {})
    changed = [signature.buffers_to_mutate, signature.user_inputs_to_mutate, parameters]
    for name in (name for mapping in changed for name in mapping.values()):
        raise DeploymentUnsupported(
            f"the model changes {name} in its forward, and programs change nothing yet",
            hint="call model.eval() first, or return the new value",
        )


def _said(error: BaseException) -> str:
    said = re.sub(r"\s+", " ", str(error).strip().split("\n\n")[0])[:300]
    return f"{type(error).__name__}: {said}"


def _name_of(model: Callable[..., Any]) -> str:
    """An identifier in lower case: the name of the function, or of the module's class."""
    if is_script(model):
        name: Any = getattr(model, "original_name", None) or getattr(model, "name", "model")
    elif isinstance(model, nn.Module):
        name = next((c.__name__ for c in type(model).__mro__ if not c.__module__.startswith("opwright.")), "model")
    else:
        name = getattr(model, "__name__", None) or type(model).__name__
    found = re.sub(r"\W+", "_", ascii_spelling(name)).strip("_").lower()
    return found if found.isidentifier() else "model"
