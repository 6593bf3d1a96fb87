"""Which calls change buffers, as a derivation found: noted on disk, so that no other process begins without that."""

from __future__ import annotations

import logging
from collections.abc import Hashable

from opwright.binding.variants.records import record_key
from opwright.errors import OpwrightError
from opwright.settings import Settings
from opwright.toolchain.storage.records import RecordStore
from opwright.tracing.recording.faults import summary

_log = logging.getLogger(__name__)
_KIND = "changes"


class Noted:
    """Notes on calls of modules, by the identity of a module's state and the structure of the arguments.

    Args:
        settings: Says where the cache directory is.
    """

    def __init__(self, settings: Settings) -> None:
        self._store = RecordStore(settings)

    def changes_buffers(self, identity: str | None, layout: Hashable) -> bool:
        """Whether some process found that such calls change buffers."""
        try:
            return identity is not None and self._store.read(_KIND, record_key(identity, layout)) is not None
        except OpwrightError:  # the cache cannot be used: a derivation will find it
            return False

    def note(self, identity: str | None, layout: Hashable) -> None:
        """Note that such calls change buffers."""
        try:
            if identity is not None:
                self._store.write(_KIND, record_key(identity, layout), {})
        except OpwrightError as error:  # it costs only the next process time
            _log.warning("other processes will derive a module again: %s", summary(error))
