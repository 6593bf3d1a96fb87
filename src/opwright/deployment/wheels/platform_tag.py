"""Which machines libraries run on, as the names of wheels say it: by auditwheel's policies.

A policy names the symbols of glibc, libstdc++ and libgcc that all Linux systems of an age have, by their versions, and
the libraries that are part of each of them.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable
from pathlib import Path
from typing import Any

LEAST = "manylinux_2_28"
"""What torch's own wheels ask for, from 2.6 on."""

# Libraries of torch, and the loader of every Linux, which no policy lists; what has a `thread_local` variable needs it.
_ALWAYS_THERE = ("libtorch", "libc10", "ld-linux", "ld64.so")


def platform_tag(libraries: Iterable[Path], machine: str) -> str:
    """Return the tag of the oldest Linux that libraries run on, such as manylinux_2_28_x86_64.

    It is linux_x86_64, which says no more than that they run on machines such as this one, if they need what no policy
    has, or if auditwheel is not installed.

    Args:
        libraries: Shared objects.
        machine: The architecture.
    """
    anything = f"linux_{machine}"
    try:
        elf = importlib.import_module("auditwheel.elfutils")
        policies = _policies(machine)
    except (ImportError, ValueError):  # an architecture without policies
        return anything
    symbols: dict[str, set[str]] = {}
    needed: set[str] = set()
    for path, read in elf.elf_file_filter(list(libraries)):
        needed |= {name for name in elf.elf_read_dt_needed(path) if not name.startswith(_ALWAYS_THERE)}
        for library, symbol in elf.elf_find_versioned_symbols(read):
            symbols.setdefault(library, set()).add(symbol)
    found = policies.versioned_symbols_policy(symbols)
    least = policies.get_policy_by_name(f"{LEAST}_{machine}")
    policy = min(found, least, key=lambda each: each.priority)
    return str(policy.name) if needed <= policy.whitelist else anything


def can_tell() -> bool:
    """Whether auditwheel is there, so that a tag can say more than linux."""
    return importlib.util.find_spec("auditwheel") is not None


def _policies(machine: str) -> Any:
    libc = importlib.import_module("auditwheel.libc").Libc.GLIBC
    architecture = importlib.import_module("auditwheel.architecture").Architecture(machine)
    return importlib.import_module("auditwheel.policy").WheelPolicies(libc=libc, arch=architecture)
