"""What records of an operator are filed under."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Hashable

import torch

from opwright.package import PACKAGE


def record_key(identity: str, kind: Hashable, position: int = 0) -> str:
    """What something known of an operator is filed under: by its identity, a kind of call, and a number."""
    facts = json.dumps([identity, torch.__version__, _own_version(), repr(kind), position])
    return hashlib.sha256(facts.encode()).hexdigest()


@functools.cache
def _own_version() -> str:
    """Changes whenever a file of this package does."""
    package = PACKAGE
    facts = [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(package.rglob("*.py"))]
    return hashlib.sha256(repr(facts).encode()).hexdigest()
