"""`opwright.build_wheel`: operators and optimizers → plans → libraries → one wheel."""

from __future__ import annotations

import hashlib
import json
import keyword
import platform
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from opwright.codegen.cpp.registration import ProcessorLevel, emit_registration
from opwright.deployment.wheels.archive import Distribution, read_version, write_wheel
from opwright.deployment.wheels.carried import carried_modules, with_neighbours
from opwright.deployment.wheels.faithful import refuse_unfaithful, refuse_unfaithful_optimizer
from opwright.deployment.wheels.init_module import init_module, kinds_of
from opwright.deployment.wheels.optimizers import PlannedOptimizer, plan_optimizers
from opwright.deployment.wheels.planned import PlannedOperator, plan_operator, servings
from opwright.deployment.wheels.platform_tag import can_tell, platform_tag
from opwright.deployment.wheels.records import operator_record
from opwright.errors import ReferenceWithoutText, WheelUnsupported
from opwright.operators.base import BaseOperator
from opwright.operators.reference_text import reference_text
from opwright.samples import DEFAULT_DTYPES
from opwright.settings import Settings
from opwright.toolchain.bundle import CUDA_FOLDER, Bundle, build_bundle
from opwright.toolchain.compiler import find_compiler
from opwright.toolchain.cpu_levels import CpuLevel, cpu_levels
from opwright.toolchain.gpu.architectures import for_others
from opwright.toolchain.gpu.images import image_targets
from opwright.toolchain.gpu.nvrtc import find_nvrtc
from opwright.toolchain.source import Source
from opwright.version import VERSION

TORCH_TARGET = "2.11"  # the oldest torch that kernels run on; see include/opwright/shim.h
_REQUIRES_PYTHON = ">=3.10"
_NO_AUDITWHEEL = (
    "the wheel is for machines such as this one; install auditwheel to have its tag say on which Linux systems it runs"
)
_TEXT_HINT = "use numbers, strings, dtypes, modules of Python and torch, and functions that use nothing else"
_RESERVED = {
    "Path",
    "cpu_level",
    "equip_all",
    "library",
    "load",
    "reference",
    "runtime",
}  # what its `__init__.py` names
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel that was built.

    Attributes:
        path: Where it is.
        package: What Python imports.
        operators: The names of its operators at the dispatcher.
        optimizers: The names of its optimizers.
        kernels: How many kernels there are for each level of processors.
        levels: These levels.
        dtypes: What the samples and parameters were made in, such as "float32"; others run the functions.
        size_bytes: How large its file is.
        gpus: What there are kernels for GPUs for: "sm_90" is machine code, "compute_90" PTX; empty without CUDA.
        without_cuda: Operators whose samples do not all have kernels for GPUs, and why.
    """

    path: Path
    package: str
    operators: tuple[str, ...]
    optimizers: tuple[str, ...]
    kernels: int
    levels: tuple[str, ...]
    dtypes: tuple[str, ...]
    size_bytes: int
    gpus: tuple[str, ...]
    without_cuda: Mapping[str, tuple[str, ...]]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "path": str(self.path)}


def build_wheel(
    operators: Sequence[Any],
    directory: str | Path,
    *,
    name: str | None = None,
    version: str = "0.1.0",
    dtypes: Sequence[torch.dtype] = DEFAULT_DTYPES,
    cuda: str | None = None,
    settings: Settings | None = None,
) -> Wheel:
    """Build a wheel that runs operators and optimizers wherever torch is, without opwright and without a compiler.

    It holds the kernels that the samples of the operators ask for, with gradients and without, and those of the
    optimizers, for several levels of processors; and the functions as written, which serve everything else.

    Args:
        operators: What to ship: operators, each with samples; classes made by `opwright.optimizer`, with kernels for
            usual shapes and the default hyper-parameters; and optimizers made of these classes, with kernels for their
            own parameters and hyper-parameters.
        directory: Where the wheel goes; made if need be.
        name: What installers call it; by default the name of the first operator with "-operators" behind it, or of the
            first optimizer with "-optimizers".
        version: Its version.
        dtypes: What the samples, and the parameters for classes of optimizers, are made in.
        cuda: The GPUs to add kernels for, as compute capabilities or generations: "8.0 9.0", "Hopper". The newest of
            them gets PTX too, which later GPUs run. None for no kernels for GPUs.
        settings: Where to build, and with which compiler; by default as the environment says.

    Raises:
        WheelUnsupported: If a wheel cannot hold one of them, or what is asked of it.
        SamplesMissing: If an operator has no samples.
        ArchitectureUnknown: If the list of GPUs cannot be read.
        BuildFailed, CompilerMissing, CudaCompilerMissing, UnsafeCache, CacheUnusable: As kernels of this process are
            built.
    """
    others = [each for each in operators if not isinstance(each, BaseOperator)]
    operators = [each for each in operators if isinstance(each, BaseOperator)]
    settings = settings or Settings.from_environment()
    settings = settings if cuda is None else for_others(cuda, settings)
    kinds = servings(cuda=cuda is not None, settings=settings)
    optimizers = plan_optimizers(others, dtypes, kinds)
    name = _checked_name(name, operators, optimizers)
    package = name.lower().replace("-", "_").replace(".", "_")
    released = read_version(version)
    levels = cpu_levels()
    reference = _reference_module(operators, optimizers)
    for operator in operators:
        refuse_unfaithful(reference, operator, dtypes)
    for optimizer in optimizers:
        refuse_unfaithful_optimizer(reference, optimizer)
    planned = [plan_operator(operator, package, dtypes, kinds) for operator in operators]
    with tempfile.TemporaryDirectory() as scratch:
        bundle = _bundle(package, planned, optimizers, levels)
        libraries = build_bundle(bundle, Path(scratch), settings)
        modules = carried_modules(with_optimizers=bool(optimizers))
        contents = {
            f"{package}/__init__.py": init_module(package, planned, optimizers).encode(),
            f"{package}/reference.py": with_neighbours(reference, ".runtime.").encode(),
            f"{package}/operators.json": _json([operator_record(each) for each in planned]),
            **({f"{package}/optimizers.json": _json([each.record() for each in optimizers])} if optimizers else {}),
            f"{package}/stamp.json": _json(_stamp(bundle, Path(scratch), libraries, settings)),
            **{f"{package}/runtime/{file}": text.encode() for file, text in modules.items()},
            **{f"{package}/lib/{library.relative_to(scratch)}": library.read_bytes() for library in libraries},
        }
        tag = f"py3-none-{platform_tag(libraries, platform.machine())}"
    names = [*(each.short_name for each in planned), *(each.name for each in optimizers)]
    summary = f"{kinds_of(planned, optimizers)} with kernels of their own: {', '.join(names)}"
    if settings.notify and not can_tell():
        print(f"opwright: {_NO_AUDITWHEEL}", file=sys.stderr)
    distribution = Distribution(name, released, tag, summary, _REQUIRES_PYTHON, (f"torch>={TORCH_TARGET}",))
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    path = write_wheel(distribution, contents, directory)
    return Wheel(
        path=path,
        package=package,
        operators=tuple(each.name for each in planned),
        optimizers=tuple(each.name for each in optimizers),
        kernels=len(bundle.kernels),
        levels=tuple(level.name for level in levels),
        dtypes=tuple(str(dtype).removeprefix("torch.") for dtype in dtypes),
        size_bytes=path.stat().st_size,
        gpus=_gpus(bundle, settings),
        without_cuda={each.name: each.left_to_reference for each in planned if each.left_to_reference},
    )


def _reference_module(operators: Sequence[BaseOperator], optimizers: Sequence[PlannedOptimizer]) -> str:
    try:
        reference = reference_text(
            [operator.reference for operator in operators],
            with_packages=False,
            decorated=[each.function for each in optimizers],
            decorator=optimizers[0].decorator if optimizers else None,
        )
    except ReferenceWithoutText as refusal:
        fact = f"{refusal.fact}, so it cannot be carried in a wheel"
        raise WheelUnsupported(fact, place=refusal.place, hint=refusal.hint or _TEXT_HINT) from refusal
    what = kinds_of(operators, optimizers).lower()
    return reference.text(f"The functions that the {what} of this package came from, as they were written.")


def _checked_name(name: str | None, operators: Sequence[BaseOperator], optimizers: Sequence[PlannedOptimizer]) -> str:
    """The name of the wheel; refused if Python could not import it."""
    names = [*(operator.name.split("::")[1] for operator in operators), *(each.name for each in optimizers)]
    if not names:
        raise WheelUnsupported("there is no operator to put into a wheel", hint="name at least one")
    name = name or f"{names[0].replace('_', '-')}-{'operators' if operators else 'optimizers'}"
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise WheelUnsupported(f"{name!r} is not the name of a package", hint="write one such as my-operators")
    if taken := sorted(_RESERVED & set(names)):
        raise WheelUnsupported(f"an operator of a wheel cannot be called {taken[0]}", hint="give it another name=")
    if twice := sorted({each for each in names if names.count(each) > 1}):
        raise WheelUnsupported(f"two operators of the wheel are called {twice[0]}", hint="give one another name=")
    return name


def _bundle(
    package: str,
    planned: Sequence[PlannedOperator],
    optimizers: Sequence[PlannedOptimizer],
    levels: Sequence[CpuLevel],
) -> Bundle:
    namespace = f"{package}_kernels"
    sources = {s.name: s for each in planned for variant in each.variants for s in variant.plan.sources}
    sources |= {source.name: source for each in optimizers for source in each.kernels.sources}
    cpp = tuple(source for source in sources.values() if source.device is None)
    cuda = tuple(source for source in sources.values() if source.device is not None)
    processor_levels = [ProcessorLevel(level.name, level.features, level.capability) for level in levels]
    beside = [f"{CUDA_FOLDER}/{source.name}.so" for source in cuda]
    text = emit_registration(namespace, [each.registered() for each in planned], processor_levels, beside)
    return Bundle(package, namespace, cpp, Source("registration", text), tuple(levels), cuda)


def _gpus(bundle: Bundle, settings: Settings) -> tuple[str, ...]:
    return image_targets(settings) if bundle.cuda and not settings.cuda_on_host else ()


def _stamp(bundle: Bundle, folder: Path, libraries: Sequence[Path], settings: Settings) -> dict[str, Any]:
    """What the libraries were built for and with; the runtime compares the first four before it loads them.

    What is said of GPUs it compares when a tensor on one comes, and torch's default dtype at every call.
    """
    gpus = _gpus(bundle, settings)
    return {
        "system": sys.platform,
        "machine": platform.machine(),
        "torch_target": TORCH_TARGET,
        "libraries": {
            str(library.relative_to(folder)): hashlib.sha256(library.read_bytes()).hexdigest() for library in libraries
        },
        "library": f"{bundle.name}.so",
        "package": bundle.name,
        "namespace": bundle.namespace,
        "levels": [level.name for level in bundle.levels],
        "gpus": gpus,
        "cuda": find_nvrtc(settings.cuda_home).version if gpus and not settings.cuda_compiler else None,
        "default_dtype": str(torch.get_default_dtype()).removeprefix("torch."),
        "torch": torch.__version__,
        "compiler": find_compiler(settings).version,
        "opwright": VERSION,
    }


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()
