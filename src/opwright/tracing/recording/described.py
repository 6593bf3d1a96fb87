"""Names for the values of decompositions, ours and torch's, from their variables."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

import torch
from torch.fx import Node

from opwright.tracing.decompositions import table

_FOLDERS = (table.__name__.rpartition(".")[0], "torch._decomp.")
_LEAST_LETTERS = 3  # torch's `a`, `c1` and `ds` say less than the operations
_COPIES = ("_cast", "_casted")


class Described:
    """The nodes that decompositions name."""

    def __init__(self) -> None:
        self.names: dict[Node, str] = {}
        self._under_way: list[tuple[CodeType, dict[int, FrameType]]] = []

    def look_from(self, frame: FrameType | None) -> None:
        """Keep the frames of the running decomposition and its callees, up from a frame."""
        if not self._under_way:
            return
        code, kept = self._under_way[-1]
        while frame is not None:
            if str(frame.f_globals.get("__name__")).startswith(_FOLDERS):
                kept[id(frame)] = frame
            frame = None if frame.f_code is code else frame.f_back

    @contextmanager
    def of(self, rule: Callable[..., Any], nodes: Mapping[int, Node]) -> Iterator[None]:
        """Name what a decomposition computes until the end of the block; callers name its parameters.

        Args:
            rule: The decomposition.
            nodes: The node of each tensor, by identity.
        """
        if not inspect.isfunction(rule):
            yield
            return
        kept: dict[int, FrameType] = {}
        self._under_way.append((rule.__code__, kept))
        try:
            yield
        finally:
            self._under_way.pop()
            for frame in kept.values():
                self._name(frame, nodes)
            kept.clear()  # a frame keeps its callers alive

    def _name(self, frame: FrameType, nodes: Mapping[int, Node]) -> None:
        code = frame.f_code
        parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        for name, value in frame.f_locals.items():
            spoken = len(name) >= _LEAST_LETTERS and name not in parameters and not name.endswith(_COPIES)
            if spoken and isinstance(value, torch.Tensor) and id(value) in nodes:
                self.names.setdefault(nodes[id(value)], name)
