"""Structures as native/structure.h takes them: tuples, lists, dicts and named tuples around leaves."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from torch.utils._pytree import TreeSpec

_KINDS: dict[Any, int] = {tuple: 1, list: 2, dict: 3, namedtuple: 4}  # which torch's trees call all named tuples


class NotTold(Exception):
    """There is a container in it that only torch's trees know, such as an OrderedDict or one that a user registered."""


def spec_of(layout: TreeSpec) -> Any:
    """A layout as plain data: None for a leaf, or (kind, keys or class, members).

    Raises:
        NotTold: If C++ cannot take it apart, or put it together.
    """
    if layout.is_leaf():
        return None
    kind = _KINDS.get(layout.type)
    if kind is None or (layout.type is namedtuple and layout.context.__iter__ is not tuple.__iter__):
        raise NotTold
    context = tuple(layout.context) if layout.type is dict else layout.context
    return kind, context, tuple([spec_of(child) for child in layout.children()])
