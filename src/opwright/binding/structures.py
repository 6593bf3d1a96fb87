"""Structures as native/structure.h takes them: tuples, lists, dicts, named tuples and torch's records around leaves."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import torch
from torch.utils._pytree import TreeSpec

_KINDS: dict[Any, int] = {tuple: 1, list: 2, dict: 3, namedtuple: 4}  # which torch's trees call all named tuples
_RECORD = 5
_RECORDS = frozenset(each for each in vars(torch.return_types).values() if isinstance(each, type))


class NotTold(Exception):
    """There is a container in it that only torch's trees know, such as an OrderedDict or one that a user registered."""


def spec_of(layout: TreeSpec) -> Any:
    """A layout as plain data: None for a leaf, or (kind, keys or class, members).

    Raises:
        NotTold: If C++ cannot take it apart, or put it together.
    """
    if layout.is_leaf():
        return None
    kind = _RECORD if layout.type in _RECORDS else _KINDS.get(layout.type)
    if kind is None or (layout.type is namedtuple and layout.context.__iter__ is not tuple.__iter__):
        raise NotTold
    context = tuple(layout.context) if layout.type is dict else layout.type if kind == _RECORD else layout.context
    return kind, context, tuple([spec_of(child) for child in layout.children()])
