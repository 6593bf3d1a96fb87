"""`opwright.deploy`: a model with operators → a folder that runs elsewhere, and checks itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from opwright.deployment.programs.export import export
from opwright.deployment.programs.folder import MANIFEST, read_manifest, refuse_taken, write_manifest, written_whole
from opwright.deployment.programs.target import Checked, Options, Target, Tell
from opwright.deployment.targets import TARGETS
from opwright.errors import DeploymentFailed, DeploymentUnsupported
from opwright.settings import Settings
from opwright.version import VERSION

TargetName = Literal["aoti", "torchscript", "onnx", "executorch"]
_STEPS = 3


@dataclass(frozen=True, slots=True)
class Deployment:
    """A model in a folder of its own.

    Attributes:
        path: The folder.
        target: The format: "aoti", "torchscript", "onnx" or "executorch".
        name: What its files are called after.
    """

    path: Path
    target: str
    name: str

    @property
    def files(self) -> tuple[str, ...]:
        """What was written; `check` builds more beside it."""
        return tuple(read_manifest(self.path)["files"])

    def check(self, *, settings: Settings | None = None) -> Checked:
        """Build and run what was written, without Python where the format allows it, and compare with eager.

        Raises:
            DeploymentFailed: If it does not build or run, or a result differs by more than rounding.
            ToolMissing: If what builds or runs it is not there.
        """
        manifest = read_manifest(self.path)
        checked = TARGETS[self.target].check(self.path, manifest, settings or Settings.from_environment())
        if not checked.passed:
            found = ", ".join(f"{each:.2g}" for each in checked.differences)
            most = ", ".join(f"{each:.2g}" for each in checked.allowed)
            raise DeploymentFailed(
                f"{self.path} computes something else than eager: its results differ by {found}, allowed {most}",
                hint="deploy it again; if that changes nothing, please report it with the model",
            )
        return checked

    def __repr__(self) -> str:
        return f"Deployment({self.name}, to={self.target!r}, at={str(self.path)!r}, {len(self.files)} files)"

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"path": str(self.path), "target": self.target, "name": self.name, "files": list(self.files)}


def deploy(
    model: Callable[..., Any],
    args: Sequence[Any],
    *,
    to: TargetName = "aoti",
    at: str | Path = "out",
    dynamic_shapes: Any = None,
    operators: Literal["function", "decomposed", "custom"] | None = None,
    direct: bool = False,
    settings: Settings | None = None,
    progress: Tell | None = None,
) -> Deployment:
    """Write a model with operators of opwright in it as a program that needs neither Python nor opwright.

    Args:
        model: A module or a function; operators, or parts made by `opwright.module`, may be anywhere in it.
        args: Example arguments: tensors on the processor, and structures of them. They say which kernels are built,
            and what the program is checked with.
        to: The format; see docs/deployment.md.
        at: The folder to write. It is written whole or not at all; an earlier deployment in it is replaced.
        dynamic_shapes: Which sizes may change, as `torch.export.export` takes them.
        operators: For "onnx": what operators become.
        direct: For "aoti": whether the program calls kernels directly, not through PyTorch's dispatcher.
        settings: Where to build, and with which compiler; by default as the environment says.
        progress: Called with what is done now, how many steps are done, and of how many.

    Raises:
        DeploymentUnsupported: If the model, or a part of it, cannot be written so; nothing is written then.
        DirectoryTaken: If the folder holds something else than a deployment.
        ToolMissing: If something that the format needs is not installed.
        BuildFailed, CompilerMissing, UnsafeCache, CacheUnusable: As kernels of this process are built.
    """
    tell = progress or _silent
    target = _target(to)
    options = Options(operators, direct, settings or Settings.from_environment())
    _refuse_options(target, options)
    at = Path(at)
    refuse_taken(at)
    target.prepare(options)
    tell("exporting the model", 0, _STEPS)
    exported = export(model, args, dynamic_shapes, keeps_scripts=target.keeps_scripts)
    tell(f"writing it for {to}", 1, _STEPS)
    with written_whole(at) as folder:
        more = target.write(exported, folder, options)
        files = sorted([MANIFEST, *(str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file())])
        versions = {"opwright": VERSION, "torch": str(torch.__version__)}
        write_manifest(
            folder,
            {
                "name": exported.name,
                "target": to,
                **versions,
                "files": files,
                "allowed": list(exported.allowed),
                **more,
            },
        )
    tell("written", _STEPS, _STEPS)
    return Deployment(at, to, exported.name)


def _target(to: str) -> Target:
    if to not in TARGETS:
        raise DeploymentUnsupported(f"there is no target {to!r}", hint=f"choose from {', '.join(TARGETS)}")
    return TARGETS[to]


def _refuse_options(target: Target, options: Options) -> None:
    for name in ("operators", "direct"):
        if getattr(options, name) and name not in target.takes:
            takers = [each.name for each in TARGETS.values() if name in each.takes]
            raise DeploymentUnsupported(
                f"{name}= is not for {target.name!r}",
                hint=f"leave it out, or deploy to {' or '.join(takers) or 'another target'}",
            )


def _silent(what: str, done: int, total: int) -> None:
    """Say nothing."""
