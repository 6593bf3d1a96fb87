"""Describe the state that a module's forward may depend on, apart from the values of its tensors.

description = (class, training, plain attributes, parameters, buffers, children) of every module
tensor      = its position among the module's tensors; a shared tensor has one position
"""

from __future__ import annotations

import types
from collections.abc import Hashable
from typing import Any

import torch
from torch import nn
from torch._ops import OpOverload, OpOverloadPacket

from opwright.errors import NoKernel

BOOKKEEPING = frozenset(vars(nn.Module())) - {"training"}
_PLAIN = (int, bool, str, bytes, complex, type(None), type(...), torch.dtype, torch.device, torch.layout, type)
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, OpOverload, OpOverloadPacket)


class Described:
    """The description of a module, and its tensors.

    Args:
        module: The root.

    Attributes:
        key: The description: where it is equal for two calls, the module itself gives both the same trace.
        tensors: Its parameters and buffers, each once.
        buffers: Positions of the buffers.
        names: Dotted names of the tensors.

    Raises:
        NoKernel: If an attribute has a value whose changes could not be detected.
    """

    __slots__ = ("_modules", "_positions", "buffers", "key", "names", "tensors")

    def __init__(self, module: nn.Module) -> None:
        self.tensors: list[torch.Tensor] = []
        self.names: list[str] = []
        self.buffers: list[int] = []
        self._positions: dict[int, int] = {}
        self._modules: dict[int, int] = {}
        self.key: Hashable = self._described(module, "")

    def position(self, tensor: torch.Tensor) -> int:
        """The position of a tensor among the tensors."""
        return self._positions[id(tensor)]

    def _described(self, module: nn.Module, prefix: str) -> Hashable:
        if id(module) in self._modules:
            return self._modules[id(module)]
        self._modules[id(module)] = len(self._modules)
        attributes = tuple(
            [
                (name, _value(value, f"{prefix}{name}"))
                for name, value in module.__dict__.items()
                if name not in BOOKKEEPING
            ]
        )
        return (
            type(module),
            attributes,
            self._tensors(module._parameters, prefix, is_buffer=False),
            self._tensors(module._buffers, prefix, is_buffer=True),
            tuple(
                [
                    (name, None if child is None else self._described(child, f"{prefix}{name}."))
                    for name, child in module._modules.items()
                ]
            ),
        )

    def _tensors(self, held: dict[str, Any], prefix: str, *, is_buffer: bool) -> Hashable:
        return tuple(
            [
                (name, None if tensor is None else self._held(tensor, f"{prefix}{name}", is_buffer))
                for name, tensor in held.items()
            ]
        )

    def _held(self, tensor: torch.Tensor, name: str, is_buffer: bool) -> int:
        position = self._positions.setdefault(id(tensor), len(self.tensors))
        if position == len(self.tensors):
            self.tensors.append(tensor)
            self.names.append(name)
            if is_buffer:
                self.buffers.append(position)
        return position


def _value(value: Any, name: str) -> Hashable:
    kind = type(value)
    if kind is float:
        return kind, repr(value)  # distinguishes -0.0 from 0.0, and equals itself for NaN
    if kind in _PLAIN or (isinstance(value, _FUNCTIONS) and not _is_bound(value)):
        return kind, value
    if isinstance(value, (list, tuple)):
        return kind, tuple([_value(member, name) for member in value])
    if isinstance(value, dict):
        return kind, tuple([(_value(key, name), _value(member, name)) for key, member in value.items()])
    if isinstance(value, (set, frozenset)):
        return kind, frozenset([_value(member, name) for member in value])
    if isinstance(value, type):
        return value
    raise NoKernel(
        f"its attribute '{name}' is a {kind.__name__}, whose changes cannot be detected",
        hint="keep tensors in buffers, modules as submodules, and everything else in plain values",
    )


def _is_bound(function: Any) -> bool:
    """Whether a built-in is a method of a value, such as `scales.get`."""
    holder = getattr(function, "__self__", None)
    return holder is not None and not isinstance(holder, (types.ModuleType, type))
