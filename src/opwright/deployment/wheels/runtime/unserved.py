"""Unserved calls: a packaged operator says once for each kind of call that no kernel of it was built for that."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch


class Unserved:
    """Which kinds of calls were told of.

    Args:
        name: Of the operator.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._told: set[tuple[str, ...]] = set()

    def tell(self, arguments: Sequence[Any], stacklevel: int) -> None:
        """Warn, once for each kind of arguments, that the function as written runs.

        Args:
            arguments: Of the call.
            stacklevel: How many calls above this one the user's is.
        """
        kind = tuple(map(_described, arguments))
        if kind in self._told:
            return
        self._told.add(kind)
        said = f"no kernel of {self._name} was built for ({', '.join(kind)}): the function runs as written"
        warnings.warn(f"{said}; build the package with samples like this call", RuntimeWarning, stacklevel + 1)

    def tell_default(self, built: torch.dtype, stacklevel: int) -> None:
        """Warn, once for each, of a call under another default dtype of torch than the kernels were built under.

        Args:
            built: What it was then.
            stacklevel: How many calls above this one the user's is.
        """
        now, before = (str(dtype).removeprefix("torch.") for dtype in (torch.get_default_dtype(), built))
        if (now,) in self._told:
            return
        self._told.add((now,))
        said = f"no kernel of {self._name} was built for the default dtype {now}: the function runs as written"
        warnings.warn(f"{said}; kernels serve under {before}, which it was then", RuntimeWarning, stacklevel + 1)


def _described(argument: Any) -> str:
    if isinstance(argument, torch.Tensor):
        sizes = ", ".join("1" if size == 1 else "n" for size in argument.shape)
        return f"{str(argument.dtype).removeprefix('torch.')}[{sizes}]"
    return repr(argument) if isinstance(argument, (bool, str, type(None))) else type(argument).__name__
