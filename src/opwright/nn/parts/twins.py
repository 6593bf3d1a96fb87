"""Classes that pass for another one: those of what stands for a user's module while code around it runs as written.

To code that compares them, looks them up or makes objects of them, they are the class that they stand for; only
`type(part) is Linear` tells them apart.
"""

from __future__ import annotations

from abc import ABCMeta
from typing import Any


class Twin(type):
    """The class of a class that passes for the one in its `_written_as`."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make an object of the class that it stands for."""
        return cls.__dict__["_written_as"](*args, **kwargs)

    def __eq__(cls, other: object) -> bool:
        """Whether both are, or stand for, one class."""
        return _written(cls) is _written(other)

    def __hash__(cls) -> int:
        """The same as of the class that it stands for."""
        return hash(_written(cls))


class AbstractTwin(Twin, ABCMeta):
    """The same for a class that has abstract bases."""

    __eq__, __hash__ = Twin.__eq__, Twin.__hash__


def twin_for(written: type) -> type[Twin] | None:
    """The class of what stands for a class; None if that has a metaclass of its own."""
    kinds: dict[type, type[Twin]] = {type: Twin, ABCMeta: AbstractTwin}
    return kinds.get(type(written))


def _written(value: Any) -> Any:
    return vars(value).get("_written_as", value) if isinstance(value, Twin) else value
