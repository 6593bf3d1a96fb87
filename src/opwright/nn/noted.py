"""What derivations found of modules, noted on disk, so that no other process begins without it.

Which calls change buffers; and which functions a library's module runs.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Hashable
from typing import Any

from torch import nn

from opwright.binding.variants.records import record_key
from opwright.errors import OpwrightError
from opwright.settings import Settings
from opwright.toolchain.storage.records import RecordStore
from opwright.tracing.outside.ran import Codes, spelled_code
from opwright.tracing.recording.faults import summary

_log = logging.getLogger(__name__)
_CHANGES, _RUNS = "changes", "runs"


class Noted:
    """Notes on modules.

    Args:
        settings: Says where the cache directory is.
    """

    def __init__(self, settings: Settings) -> None:
        self._store = RecordStore(settings)

    def changes_buffers(self, identity: str | None, layout: Hashable) -> bool:
        """Whether some process found that such calls change buffers."""
        try:
            return identity is not None and self._store.read(_CHANGES, record_key(identity, layout)) is not None
        except OpwrightError:  # the cache cannot be used: a derivation will find it
            return False

    def note(self, identity: str | None, layout: Hashable) -> None:
        """Note that such calls change buffers."""
        if identity is not None:
            self._write(_CHANGES, record_key(identity, layout), {})

    def functions_of(self, module: nn.Module) -> Codes | None:
        """The functions that modules of this class ran in traces; None if nobody has noted them."""
        try:
            found = self._store.read(_RUNS, _home(module))
        except OpwrightError:
            return None
        return None if found is None else frozenset(found["functions"])

    def note_functions(self, module: nn.Module, functions: Codes) -> None:
        """Note the functions that a module runs, with those of before."""
        self._write(_RUNS, _home(module), {"functions": sorted(functions)})

    def _write(self, kind: str, key: str, record: dict[str, Any]) -> None:
        try:
            self._store.write(kind, key, record)
        except OpwrightError as error:  # it costs only the next process time
            _log.warning("other processes will derive a module again: %s", summary(error))


def _home(module: nn.Module) -> str:
    kind = getattr(type(module), "_written_as", type(module))
    forward = getattr(inspect.unwrap(kind.forward), "__code__", None)
    return record_key(f"{kind.__module__}.{kind.__qualname__}", forward and spelled_code(forward))
