"""opwright deploy: write a model as a program without Python, and check it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from opwright.cli.arguments import AsJson
from opwright.cli.load import load_value
from opwright.cli.terminal import progress_on_stderr, say_refusal, write_either
from opwright.deployment import Deployment, deploy
from opwright.deployment.programs.target import Checked
from opwright.errors import DeploymentFailed, DeploymentUnsupported

_WRITE_ARGS = "write example inputs beside it, as a tuple of tensors: {}_args = (x,), or args = (x,)"


def deploy_command(
    target: Annotated[str, typer.Argument(metavar="FILE:MODEL", help="A file or module, and the model in it.")],
    to: Annotated[str, typer.Option(help="The format: aoti, torchscript, onnx or executorch.")] = "aoti",
    at: Annotated[Path, typer.Option(help="The folder to write.")] = Path("out"),
    args: Annotated[
        Path | None, typer.Option("--args", help="Example inputs that torch.save wrote; else MODEL_args or args.")
    ] = None,
    operators: Annotated[str | None, typer.Option(help="For onnx: function, decomposed or custom.")] = None,
    direct: Annotated[bool, typer.Option("--direct", help="For aoti: call kernels without the dispatcher.")] = False,
    check: Annotated[bool, typer.Option(help="Build and run what was written, and compare with eager.")] = True,
    as_json: AsJson = False,
) -> None:
    """Write a model with operators as a program that needs no Python, and check it."""
    values, name = load_value(target)
    model = values[name]
    if inspect.isclass(model) or not callable(model):
        raise DeploymentUnsupported(f"{name} is no model, but {_kind(model)}", hint="name a module or a function")
    given = _read(args) if args is not None else _beside(values, name)
    shapes = values.get(f"{name}_dynamic_shapes", values.get("dynamic_shapes"))
    with progress_on_stderr(name) as tell:
        how: dict[str, Any] = {"to": to, "operators": operators, "direct": direct}
        written = deploy(model, given, at=at, dynamic_shapes=shapes, progress=tell, **how)
        tell("building and running it", 2, 3)
        checked = _checked(written) if check else None
    write_either(as_json, _as_json(written, checked), _as_text(written, checked))


def _checked(written: Deployment) -> Checked:
    try:
        return written.check()
    except DeploymentFailed as failure:  # something is wrong with what was written, not with the command
        say_refusal(failure)
        raise typer.Exit(1) from None


def _kind(value: Any) -> str:
    return "a class" if inspect.isclass(value) else f"of type {type(value).__name__}"


def _read(path: Path) -> tuple[Any, ...]:
    try:
        read = torch.load(path, weights_only=True)
    except FileNotFoundError:
        raise DeploymentUnsupported(f"there is no file {path}", hint="give one that torch.save wrote") from None
    except Exception as error:
        hint = "write a list of tensors: torch.save([x, y], path)"
        raise DeploymentUnsupported(f"{path} holds no list of tensors", hint=hint) from error
    return (read,) if isinstance(read, torch.Tensor) else tuple(read)


def _beside(values: dict[str, Any], name: str) -> Any:
    given = values.get(f"{name}_args", values.get("args"))
    if given is None:
        raise DeploymentUnsupported(f"there are no example inputs for {name}", hint=_WRITE_ARGS.format(name))
    return (given,) if isinstance(given, torch.Tensor) else given


def _as_json(written: Deployment, checked: Checked | None) -> dict[str, Any]:
    found = None if checked is None else {
        "differences": list(checked.differences), "allowed": list(checked.allowed), "run_us": checked.run_us
    }  # fmt: skip
    return {**written.to_json(), "checked": found}


def _as_text(written: Deployment, checked: Checked | None) -> str:
    lines = [f"{written.path}: {written.name} for {written.target}", f"  files      {', '.join(written.files)}"]
    if checked is not None:
        pairs = zip(checked.differences, checked.allowed, strict=True)
        lines += [f"  result {k}   differs by {found:.2g}, allowed {most:.2g}" for k, (found, most) in enumerate(pairs)]
        lines += [f"  a run      {checked.run_us:.1f} µs"] if checked.run_us is not None else []
    return "\n".join(lines)
