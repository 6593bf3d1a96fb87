"""Names in emitted Python: each is given once in a function, and hides nothing."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Iterable

RESERVED = frozenset({*keyword.kwlist, *dir(builtins), "ctx", "torch"})


class PythonNames:
    """Gives names inside one function; the parameters keep theirs as far as they can."""

    def __init__(self, parameters: Iterable[str] = ()) -> None:
        self._taken = set(parameters)

    def fresh(self, wished: str) -> str:
        """A name nobody has yet, as close to the wish as can be."""
        name = wished = f"{wished}_" if wished in RESERVED else wished
        number = 1
        while name in self._taken:
            name, number = f"{wished}_{number}", number + 1
        self._taken.add(name)
        return name


def parameter_name(name: str) -> str:
    """What a parameter is called inside: its own name, unless the body needs that for something else."""
    return f"{name}_" if name in ("ctx", "torch") else name
