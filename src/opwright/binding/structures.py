"""Structures as native/structure.h takes them: tuples, lists, dicts, named tuples and torch's records around leaves.

Results may have other containers that torch's trees know, too.
"""

from __future__ import annotations

from collections import namedtuple
from functools import partial
from typing import Any

import torch
from torch.utils._pytree import SUPPORTED_NODES, TreeSpec

_KINDS: dict[Any, int] = {tuple: 1, list: 2, dict: 3, namedtuple: 4}  # which torch's trees call all named tuples
_RECORD, _REGISTERED = 5, 6
_RECORDS = frozenset(each for each in vars(torch.return_types).values() if isinstance(each, type))


class NotTold(Exception):
    """There is a container in it that only torch's trees know, such as an OrderedDict or one that a user registered."""


def spec_of(layout: TreeSpec, *, is_result: bool = False) -> Any:
    """A layout as plain data: None for a leaf, or (kind, context, members).

    The context is a dict's keys, a named tuple's or record's class, or what makes a registered container of a list.

    Args:
        layout: The layout.
        is_result: Whether values of it are only put together, not taken apart.

    Raises:
        NotTold: If C++ cannot take it apart.
    """
    if layout.is_leaf():
        return None
    kind = _RECORD if layout.type in _RECORDS else _KINDS.get(layout.type)
    context = tuple(layout.context) if layout.type is dict else layout.type if kind == _RECORD else layout.context
    if kind is None or (layout.type is namedtuple and layout.context.__iter__ is not tuple.__iter__):
        if not is_result:
            raise NotTold
        kind, context = _REGISTERED, partial(_put_together, layout.type, layout.context)
    return kind, context, tuple([spec_of(child, is_result=is_result) for child in layout.children()])


def _put_together(kind: type, context: Any, members: list[Any]) -> Any:
    return SUPPORTED_NODES[kind].unflatten_fn(members, context)
