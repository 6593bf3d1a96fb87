"""opwright build: put operators and optimizers into a wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from opwright.api.operator import Operator
from opwright.checking.subject import is_operator
from opwright.cli.arguments import DEFAULT, TARGET_HELP, AsJson, Dtypes, dtypes_named
from opwright.cli.load import load_shipped
from opwright.cli.terminal import write_either
from opwright.deployment import Wheel, build_wheel
from opwright.errors import WheelUnsupported


def build_command(
    targets: Annotated[list[str], typer.Argument(metavar="TARGET...", help=TARGET_HELP)],
    wheel: Annotated[
        bool, typer.Option("--wheel", help="Build a wheel; required, as there is no other format yet.")
    ] = False,
    to: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("dist"),
    name: Annotated[str | None, typer.Option(help="The name of the package for installers.")] = None,
    version: Annotated[str, typer.Option(help="Its version.")] = "0.1.0",
    dtype: Dtypes = DEFAULT,
    cuda: Annotated[str | None, typer.Option(help='Add kernels for GPUs, such as "8.0 9.0".')] = None,
    as_json: AsJson = False,
) -> None:
    """Build operators and optimizers ahead of time, to run without opwright and without a compiler."""
    if not wheel:
        raise typer.BadParameter("wheels are the only format yet; add --wheel")
    dtypes = dtypes_named(dtype)
    made = build_wheel(_shipped(targets), to, name=name, version=version, dtypes=dtypes, cuda=cuda)
    write_either(as_json, made.to_json(), _described(made))


def _shipped(targets: list[str]) -> list[Any]:
    chosen: list[Any] = []
    for operator in (each for target in targets for each in load_shipped(target)):
        if is_operator(operator) and not isinstance(operator, Operator):
            raise WheelUnsupported(
                f"{operator.name} is not an operator of opwright, so a wheel cannot include it",
                hint="decorate its function with opwright.operator",
            )
        chosen.append(operator)
    return chosen


def _described(made: Wheel) -> str:
    lines = [
        str(made.path),
        *([f"  operators  {', '.join(made.operators)}"] if made.operators else []),
        *([f"  optimizers {', '.join(made.optimizers)}"] if made.optimizers else []),
        f"  kernels    {made.kernels}, each for {', '.join(made.levels)}",
        f"  dtypes     {', '.join(made.dtypes)}; others run your function",
    ]
    lines += [f"  GPUs       {', '.join(made.gpus)}"] if made.gpus else []
    lines += [f"             {name} without some: {'; '.join(why)}" for name, why in made.without_cuda.items()]
    return "\n".join([*lines, f"  size       {made.size_bytes / 1024:.0f} KiB"])
