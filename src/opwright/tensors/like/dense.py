"""Dense: a function run on what objects of a type stand for, where that is not silently something else."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from opwright.errors import HandlerRefused, Unhandled
from opwright.tensors.spellings.table import Spelling

_OF_THE_OBJECT = frozenset(
    {
        "__setitem__",
        "__setstate__",
        "_backward_hooks",
        "_cdata",
        "const_data_ptr",
        "data_ptr",
        "module_load",
        "register_hook",
        "register_post_accumulate_grad_hook",
        "retain_grad",
        "set_",
        "share_memory_",
        "untyped_storage",
    }
)
"""What is about the tensor that it is asked of, or changes it; of a dense copy it would be another's, or be lost."""


def run_dense(type_: type, spelling: Spelling, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Run a function with the objects of a type, and those inside of lists and dicts, replaced by dense tensors.

    Raises:
        Unhandled: The function changes a dense copy, or would change one, which nobody would see.
    """
    if _is_lost(type_, spelling, args, kwargs):
        raise _lost(type_, spelling)
    dense, named = dense_all(type_, args), dense_in(type_, kwargs)
    pairs = zip(tree_leaves((args, kwargs)), tree_leaves((dense, named)), strict=True)
    copies = [(copy, _version(copy)) for given, copy in pairs if isinstance(given, type_)]
    result = spelling.function(*dense, **named)
    if any(_version(copy) != version for copy, version in copies):  # as `embedding(max_norm=...)` changes its table
        raise _lost(type_, spelling)
    return result


def _lost(type_: type, spelling: Spelling) -> Unhandled:
    return Unhandled(
        f"{spelling.name} is about the object that it is called on, and would only reach a dense copy of a "
        f"{type_.__name__}",
        hint=f"write a handler: @{type_.__name__}.implements({spelling.name})",
    )


def _version(tensor: torch.Tensor) -> int:
    """How often a tensor has been changed in place, which PyTorch does not count in inference mode."""
    return 0 if tensor.is_inference() else tensor._version


def _is_lost(type_: type, spelling: Spelling, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    is_in_place = spelling.is_in_place or bool(re.search(r"[^_]_$", spelling.name))  # `torch.relu_` is no method
    if kwargs.get("inplace") or is_in_place or spelling.attribute in _OF_THE_OBJECT:
        return bool(args) and isinstance(args[0], type_)
    out = kwargs.get("out")
    return any(isinstance(each, type_) for each in (out if isinstance(out, (tuple, list)) else (out,)))


def dense_all(type_: type, values: Sequence[Any]) -> list[Any]:
    """Arguments with dense tensors in place of the objects of a type."""
    return [dense_in(type_, value) for value in values]


def dense_in(type_: type, value: Any) -> Any:
    """A value with dense tensors in place of the objects of a type; lists, tuples and dicts are looked into."""
    if isinstance(value, type_):
        return densified(value)
    kind = type(value)
    if kind in (list, tuple):
        return kind(dense_in(type_, each) for each in value)
    if kind is dict:
        return {name: dense_in(type_, each) for name, each in value.items()}
    return value


def densified(value: Any) -> torch.Tensor:
    """The dense tensor of an object.

    Raises:
        HandlerRefused: Its type has no `densify`, or this gives something else than a tensor.
    """
    name = type(value).__name__
    densify: Callable[[], Any] | None = getattr(value, "densify", None)
    if densify is None:
        raise HandlerRefused(f"{name} has no densify", hint="define densify(self), which returns a torch.Tensor")
    dense = densify()
    if not isinstance(dense, torch.Tensor):
        raise HandlerRefused(f"{name}.densify returned a {type(dense).__name__}", hint="return a torch.Tensor")
    return dense
