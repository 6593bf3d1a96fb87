"""Finding a C++ compiler that works, and the flags that it knows."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from opwright.errors import CacheUnusable, CompilerMissing
from opwright.settings import Settings
from opwright.toolchain.process.asking import Unusable, answer, first_usable
from opwright.toolchain.processor import fingerprint
from opwright.toolchain.storage.records import RecordStore, canonical_json, digest

CANDIDATES = ("g++", "clang++", "c++")

# Flags that results depend on: rounding, and integers that wrap around as torch's do.
ROUNDING_FLAGS = ("-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fwrapv")
_FLAGS = (
    *("-std=c++17", "-O2", "-fPIC", "-march=native", "-fopenmp-simd"),
    *ROUNDING_FLAGS,
    # Without warnings, a compiler prints only errors.
    *("-fvisibility=hidden", "-w"),
)
_FLAGS_OF_MACHINE = {"x86_64": ("-mprefer-vector-width=512",)}
_FLAGS_OF_KIND = {
    # -O2 builds a third faster than -O3; with these two its kernels are as fast (docs/vmath.md).
    "gcc": ("-fvect-cost-model=dynamic", "-fschedule-insns", "-fmax-errors=5"),
    "clang": ("-ferror-limit=5",),
}
# Loops that read a table are written with gathers, whatever GCC thinks of these on this processor: sin, cos and tan
# take a sixth of the time (docs/vmath.md). The first name of gathers of eight that a version knows is taken.
_GATHERS_OF_GCC = tuple(f"-mtune-ctrl=use_gather_4parts,{name}" for name in ("use_gather_8parts", "use_gather"))


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C++ compiler that works.

    Attributes:
        path: The executable.
        version: The first line of its --version.
        kind: The family of its command line.
        flags: The flags to compile with; every one is known to this compiler.
        leading_words: Words between the executable and the flags, as in `CXX="ccache g++"`.
    """

    path: Path
    version: str
    kind: Literal["gcc", "clang"]
    flags: tuple[str, ...]
    leading_words: tuple[str, ...] = ()

    @property
    def command(self) -> tuple[str, ...]:
        """How it is called, without flags."""
        return (str(self.path), *self.leading_words)


def find_compiler(settings: Settings) -> Compiler:
    """Return the compiler that the settings name, or else the first of g++, clang++ and c++ that works.

    A compiler's identity is cached while its file stays the same, so that a process with a warm cache starts no
    subprocess.

    Raises:
        CompilerMissing: None was found, or none that was found can run.
        UnsafeCache: Others can write to the cache directory.
    """
    found, reasons = first_usable(_candidates(settings), lambda words: _examine(words, settings))
    if found is not None:
        return found
    raise CompilerMissing(
        f"there is no working C++ compiler: {'; '.join(reasons)}",
        hint="install g++ or clang++, or name one that works with CXX=/path/to/compiler",
    )


def _candidates(settings: Settings) -> tuple[tuple[str, ...], ...]:
    if settings.compiler is None:
        return tuple((name,) for name in CANDIDATES)
    if Path(settings.compiler).exists():
        return ((settings.compiler,),)
    return (tuple(shlex.split(settings.compiler)) or (settings.compiler,),)


def _examine(words: tuple[str, ...], settings: Settings) -> Compiler:
    executable = shutil.which(words[0])
    if executable is None:
        raise Unusable(f"{words[0]} was not found")
    status = os.stat(executable)
    return _identify((os.path.abspath(executable), *words[1:]), status.st_mtime_ns, status.st_size, settings)


@lru_cache(maxsize=16)
def _identify(command: tuple[str, ...], mtime_ns: int, size_bytes: int, settings: Settings) -> Compiler:
    """Identify the compiler of a command: from a record, or by running it."""
    store = RecordStore(settings)
    flags = (*_FLAGS, *_FLAGS_OF_MACHINE.get(platform.machine(), ()))
    asked = (flags, _FLAGS_OF_KIND, _GATHERS_OF_GCC)
    seen = [command, os.path.realpath(command[0]), mtime_ns, size_bytes, asked, fingerprint()]
    key = digest(canonical_json(seen))
    match store.read("compiler", key):
        case {"version": str(version), "kind": "gcc" | "clang" as kind, "flags": [*known]}:
            return Compiler(Path(command[0]), version, kind, tuple(known), command[1:])
    compiler = _interrogate(command, flags)
    with suppress(CacheUnusable):  # which costs time here; `build` is the one to refuse it
        record = {"version": compiler.version, "kind": compiler.kind, "flags": list(compiler.flags)}
        store.write("compiler", key, record)
    return compiler


def _interrogate(command: tuple[str, ...], flags: tuple[str, ...]) -> Compiler:
    greeting = answer((*command, "--version"))
    kind: Literal["gcc", "clang"] = "gcc" if "Free Software Foundation" in greeting else "clang"
    known = _known_flags(command, (*flags, *_FLAGS_OF_KIND[kind]))
    if kind == "gcc":
        known += next(((flag,) for flag in _GATHERS_OF_GCC if _accepts(command, (flag,))), ())
    return Compiler(Path(command[0]), greeting.partition("\n")[0].strip(), kind, known, command[1:])


def _known_flags(command: tuple[str, ...], flags: tuple[str, ...]) -> tuple[str, ...]:
    """Drop the flags that the compiler refuses; one run where it knows them all."""
    if _accepts(command, flags):
        return flags
    answer(_check_syntax(command, ()))
    return tuple(flag for flag in flags if _accepts(command, (flag,)))


def _accepts(command: tuple[str, ...], flags: tuple[str, ...]) -> bool:
    try:
        answer(_check_syntax(command, flags))
    except Unusable:
        return False
    return True


def _check_syntax(command: tuple[str, ...], flags: tuple[str, ...]) -> tuple[str, ...]:
    return (*command, *flags, "-fsyntax-only", "-x", "c++", os.devnull)
