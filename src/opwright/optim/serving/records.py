"""Kernels on disk: what one process derived of a definition, another one loads."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from opwright.binding.variants.records import record_key
from opwright.errors import OpwrightError
from opwright.operators.reference_text import spell
from opwright.optim.definition import Definition
from opwright.optim.kinds import Kind
from opwright.optim.serving.deriving import Derived
from opwright.settings import Settings
from opwright.toolchain.source import Source
from opwright.toolchain.storage.records import RecordStore
from opwright.tracing.recording.faults import summary

_KIND = "updates"
_log = logging.getLogger("opwright")


class Records:
    """The records of one definition.

    Args:
        definition: The update.
        settings: Where they are.
        most: How many there are of a kind.
    """

    def __init__(self, definition: Definition, settings: Settings, most: int) -> None:
        self._definition = definition
        self._settings = settings
        self._most = most

    def read(self, identity: str | None, kind: Kind) -> Iterator[Derived]:
        """What is known of a kind.

        Args:
            identity: Of what the definition reads outside; None if no text tells it.
            kind: The kind.
        """
        for position in range(self._most):
            match self._at(identity, kind, position):
                case {
                    "source": [str(name), str(text), str() | None as device],
                    "operands": [*operands],
                    "numbers": [*numbers],
                    "one_by_one": bool(one_by_one),
                }:
                    yield Derived(Source(name, text, device), tuple(operands), tuple(numbers), one_by_one)
                case _:
                    return

    def write(self, identity: str | None, kind: Kind, derived: Derived) -> None:
        """Keep one more."""
        source = derived.source
        record = {
            "source": [source.name, source.text, source.device],
            "operands": list(derived.operands),
            "numbers": list(derived.numbers),
            "one_by_one": derived.one_by_one,
        }
        for position in range(self._most):
            found = self._at(identity, kind, position)
            if found == record:
                return
            if found is None and identity is not None and _has_text(kind):
                try:
                    RecordStore(self._settings).write(_KIND, self._key(identity, kind, position), record)
                except OpwrightError as error:  # it costs only the next process time
                    _log.warning("other processes will derive it again: %s", summary(error))
                return

    def _at(self, identity: str | None, kind: Kind, position: int) -> dict[str, Any] | None:
        if identity is None or not _has_text(kind):
            return None
        return RecordStore(self._settings).read(_KIND, self._key(identity, kind, position))

    def _key(self, identity: str, kind: Kind, position: int) -> str:
        facts = (self._definition.name, self._definition.states, kind, self._settings.cuda_on_host)
        return record_key(identity, facts, position)


def _has_text(kind: Kind) -> bool:
    """Whether its text tells it from every other kind."""
    return all(spell(value) is not None for _, value in kind.constants)
