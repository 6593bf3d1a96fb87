"""Finding a CUDA toolkit: in the folder that nvcc itself reports, not the one of its name on the PATH."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from opwright.errors import CacheUnusable, ToolkitMissing
from opwright.settings import Settings
from opwright.toolchain.process.asking import Unusable, answer, first_usable
from opwright.toolchain.storage.records import RecordStore, canonical_json, digest

USUAL_PLACE = Path("/usr/local/cuda")

_TOP = re.compile(r"^#\$ TOP=(.+)$", re.MULTILINE)
_RELEASE = re.compile(r"release (\d+\.\d+)")
_CODE = re.compile(r"^sm_(\d+)(\d)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CudaToolkit:
    """A toolkit that can compile and link.

    Attributes:
        nvcc: The compiler, as it was found; it may be a script that calls another one.
        root: Where the toolkit lives, as its nvcc says.
        version: The release, such as "13.0".
        headers: The folder of cuda_runtime.h.
        runtime: The library libcudart, by its file.
        architectures: The devices that nvcc compiles for, such as "9.0".
    """

    nvcc: Path
    root: Path
    version: str
    headers: Path
    runtime: Path
    architectures: tuple[str, ...]


def find_cuda_toolkit(settings: Settings) -> CudaToolkit:
    """Return the toolkit that CUDA_HOME names, or else the first on the PATH, from PyPI or at the usual place.

    Raises:
        ToolkitMissing: There is none, or none that is complete.
        UnsafeCache: Others can write to the cache directory.
    """
    found, reasons = first_usable(_candidates(settings), lambda nvcc: _examine(nvcc, settings))
    if found is not None:
        return found
    raise ToolkitMissing(
        "there is no CUDA toolkit" + (f": {'; '.join(reasons)}" if reasons else ": nvcc was not found"),
        hint="pip install nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cuda-cccl, or set CUDA_HOME to a toolkit",
    )


def wheel_packages() -> tuple[Path, ...]:
    """Return where the package `nvidia` of these wheels lies; it has no module of its own, and may lie in several."""
    found = importlib.util.find_spec("nvidia")
    return tuple(map(Path, found.submodule_search_locations or ())) if found else ()


def wheel_folders() -> tuple[Path, ...]:
    """Return the folders in which NVIDIA's wheels from PyPI keep `bin`, `include` and `lib`."""
    return tuple(folder for package in wheel_packages() if package.is_dir() for folder in sorted(package.iterdir()))


def _candidates(settings: Settings) -> Iterator[Path]:
    if settings.cuda_home is not None:
        yield settings.cuda_home / "bin" / "nvcc"
        return
    on_path = shutil.which("nvcc")
    if on_path is not None:
        yield Path(on_path).absolute()
    for folder in (*wheel_folders(), USUAL_PLACE):
        if (folder / "bin" / "nvcc").exists():
            yield folder / "bin" / "nvcc"


def _examine(nvcc: Path, settings: Settings) -> CudaToolkit:
    answers = _ask(nvcc, settings)
    root = Path(answers["root"])
    places = (root, *sorted(root.glob("targets/*")), *(wheel_folders() if root in wheel_folders() else ()))
    headers = _first(f"{nvcc} has no cuda_runtime.h below {root}", places, "include/cuda_runtime.h")
    runtime = _first(f"{nvcc} has no libcudart below {root}", places, "lib64/libcudart.so*", "lib/libcudart.so*")
    return CudaToolkit(nvcc, root, answers["version"], headers.parent, runtime, tuple(answers["architectures"].split()))


def _ask(nvcc: Path, settings: Settings) -> dict[str, str]:
    """Return what nvcc reports about itself: from a record, or by running it."""
    try:
        status = os.stat(nvcc)
    except OSError as error:
        raise Unusable(f"there is no {nvcc}") from error
    store = RecordStore(settings)
    key = digest(canonical_json([str(nvcc), status.st_mtime_ns, status.st_size]))
    match store.read("cuda_toolkit", key):
        case {"root": str(root), "version": str(version), "architectures": str(names)} if Path(root).exists():
            return {"root": root, "version": version, "architectures": names}
    answers = _interrogate(nvcc)
    with suppress(CacheUnusable):
        store.write("cuda_toolkit", key, answers)
    return answers


def _interrogate(nvcc: Path) -> dict[str, str]:
    top = _TOP.search(answer((str(nvcc), "--dryrun", "-x", "cu", "-c", os.devnull), with_stderr=True))
    root = Path(top[1]) if top else Path(os.path.realpath(nvcc)).parents[1]
    release = _RELEASE.search(answer((str(nvcc), "--version"), with_stderr=True))
    if release is None:
        raise Unusable(f"{nvcc} does not say which release it is")
    codes = _CODE.findall(answer((str(nvcc), "--list-gpu-code"), with_stderr=True))
    architectures = sorted({(int(major), int(minor)) for major, minor in codes})
    return {
        "root": os.path.realpath(root),
        "version": release[1],
        "architectures": " ".join(f"{major}.{minor}" for major, minor in architectures),
    }


def _first(complaint: str, places: tuple[Path, ...], *patterns: str) -> Path:
    for place in places:
        for pattern in patterns:
            for found in sorted(place.glob(pattern)):
                return found
    raise Unusable(complaint)
