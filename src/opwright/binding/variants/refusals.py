"""Refusals of derivations on disk: another process, or an equal layer of the same model, does not try in vain."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import torch

from opwright.binding.variants.kinds import Key
from opwright.binding.variants.records import record_key
from opwright.errors import NoKernel, OpwrightError, Place, UntraceableReference
from opwright.settings import Settings
from opwright.toolchain.storage.records import RecordStore
from opwright.tracing.recording.faults import summary

_KIND = "refusals"
# Of these classes alone, not of others that they stand above: what failed by chance, or for a value, is tried again.
_CLASSES = {kind.__name__: kind for kind in (NoKernel, UntraceableReference)}
_log = logging.getLogger("opwright")


def find_refusal(identity: str | None, kind: Key, arguments: Sequence[Any], settings: Settings) -> OpwrightError | None:
    """What a derivation for arguments of the same sizes and strides was refused with."""
    record = None if identity is None else RecordStore(settings).read(_KIND, _key(identity, kind, arguments))
    match record:
        case {"class": str(name), "fact": str(fact), "hint": str() | None as hint, "at": [str(file), int(line)]}:
            if name in _CLASSES:
                return _CLASSES[name](fact, hint=hint, place=Place(file, line) if file else None)
    return None


def record_refusal(
    identity: str | None, kind: Key, arguments: Sequence[Any], settings: Settings, refusal: OpwrightError
) -> None:
    """Keep a refusal that another process would come to as well."""
    if identity is None or type(refusal) not in _CLASSES.values():
        return
    at = [refusal.place.file, refusal.place.line] if refusal.place else ["", 0]
    record = {"class": type(refusal).__name__, "fact": refusal.fact, "hint": refusal.hint, "at": at}
    try:
        RecordStore(settings).write(_KIND, _key(identity, kind, arguments), record)
    except OpwrightError as error:  # it costs only the next process time
        _log.warning("other processes will derive it again: %s", summary(error))


def _key(identity: str, kind: Key, arguments: Sequence[Any]) -> str:
    tensors = [each for each in arguments if isinstance(each, torch.Tensor)]
    sizes = [(tuple(each.shape), each.stride() if each.layout is torch.strided else ()) for each in tensors]
    return record_key(identity, (kind, sizes))
