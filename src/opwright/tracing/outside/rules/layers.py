"""Guards of torch modules: of those that a function finds outside, and of one that is served, with those inside it.

The tensors of a served module are arguments of its operator. So their guards only say that a tensor is there, and fill
slots: a call reads them there. A tensor, or a module, that is met at several places has one slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.nn.modules import module as torch_module
from torch.nn.utils import parametrize

from opwright.tracing.outside.guard import Check, Fetch, Guard
from opwright.tracing.outside.purity import is_installed, module_of
from opwright.tracing.outside.rules.classes import class_of
from opwright.tracing.outside.rules.containers import only_asked
from opwright.tracing.outside.unasked import names_of_class
from opwright.tracing.outside.walk import Layers, Walk, Way

_OF_TORCH = frozenset(vars(torch.nn.Module())) - {"training"}
BOOKKEEPING = _OF_TORCH | {"_compiled_call_impl"}  # attributes that are not a module's own
# Sets of names by which transformers' models are loaded, saved and placed. Their order is another in each process, and
# counts only where code names them.
_OF_LOADING = frozenset({
    "_keep_in_fp32_modules", "_keep_in_fp32_modules_strict", "_keys_to_ignore_on_load_missing",
    "_keys_to_ignore_on_load_unexpected", "_keys_to_ignore_on_save", "_no_split_modules", "_skip_keys_device_placement",
})  # fmt: skip
_HOOKS = frozenset(name for name in _OF_TORCH if name.endswith("_hooks"))
_RUN_BY_CALLS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_GLOBAL_HOOKS = tuple(name for name in vars(torch_module) if name.startswith("_global_") and name.endswith("_hooks"))
_CALLED = ("forward", "_call_impl", "_wrapped_call_impl")  # by Python, where a module is called
_CALLING = ("__call__", "_call_impl", "_wrapped_call_impl", "__getattr__")
_PARTS = ("_parameters", "_buffers", "_modules")


def layer(walk: Walk, value: Any, way: Way) -> Guard:
    """A module that a function finds outside; a function that uses its tensors has no kernels anyway."""
    if walk.layers is not None:
        return _served(walk, walk.layers, value, way)
    cls, held = type(value), vars(value)
    if is_installed(module_of(cls)):
        wanted = {name for name in held if not name.startswith("_")}
    else:
        wanted = {"training", *walk.counting(held)} - {*_PARTS}
    inner = [_class(walk, cls, way), *_calling(walk, way)]
    for name in sorted(wanted | (_HOOKS & held.keys())):
        inner.append(walk.describe(held[name], way.member(Fetch.ATTRIBUTE, name)))
    inside = way.to(Fetch.ATTRIBUTE, "__dict__", way.label)
    inner.append(walk.guard(inside, Check.TYPE, dict, "attributes", _hiding(walk, value, way)))
    inner += [_part(walk, held, part, way, Fetch.ATTRIBUTE) for part in _PARTS]
    return walk.guard(way, Check.TYPE, cls, cls.__qualname__, inner)


def _class(walk: Walk, cls: type, way: Way) -> Guard:
    return class_of(walk, cls, way.to(Fetch.VIA, type, f"class of {way.label}"))


def _calling(walk: Walk, way: Way) -> Iterator[Guard]:
    """What runs where a module is called, which libraries exchange for all modules; once in a walk."""
    if "calls of modules" in walk.known:
        return
    walk.known.add("calls of modules")
    inside = way.to(Fetch.KNOWN, torch.nn.Module, "torch.nn.Module")
    inner = []
    for name in _CALLING:
        method = inside.to(Fetch.METHOD, name, f"'{name}' of torch.nn.Module")
        inner.append(walk.describe(vars(torch.nn.Module)[name], method))
    yield walk.guard(inside, Check.IDENTITY, torch.nn.Module, "torch.nn.Module", inner)


def _hiding(walk: Walk, value: Any, way: Way) -> list[Guard]:
    """The absence of attributes that would hide members of the class."""
    cls, held = type(value), vars(value)
    of_class = names_of_class(cls).intersection({*_CALLED, *walk.names})
    return [walk.nothing(way.member(Fetch.ITEM, name)) for name in sorted((walk.asked | of_class) - held.keys())]


def _held_in_part(walk: Walk, value: Any, way: Way) -> Guard:
    """A tensor or a child; a function that uses tensors which are no arguments has no kernels."""
    if walk.layers is None and isinstance(value, torch.Tensor):
        return walk.guard(way, Check.NOTHING, None, "a tensor")
    return walk.describe(value, way)


def _served(walk: Walk, layers: Layers, value: Any, way: Way) -> Guard:
    """A module inside a served one, or that itself: tensors, children, hooks, and the attributes that code names."""
    cls, held = type(value), vars(value)
    is_served, is_first = layers.of_module and not layers.has_modules, not layers.has_modules
    layers.has_modules = True
    is_known, slot = _slot(layers, value)
    expected, fact = (cls, slot), f"{cls.__qualname__} in {slot}"
    if is_known:
        walk.meets_again(value, way)
        return walk.guard(way, Check.SLOT, expected, fact)
    is_open = is_installed(module_of(cls)) or walk.every_name
    named = held.keys() if is_open else {"training", "forward", *walk.counting(held)} & held.keys()
    only = layers.only if is_served else None
    inner = [_part(walk, held, part, way, Fetch.ITEM, only) for part in _PARTS]
    if not is_served:  # a call of the served module itself runs its hooks
        inner += [_hooks(walk, layers, held[name], way.member(Fetch.ITEM, name)) for name in _RUN_BY_CALLS]
    inner += [_attribute(walk, held[name], name, way) for name in sorted(named - BOOKKEEPING)]
    if walk.every_name:
        inner.append(walk.describe(tuple(held), way.to(Fetch.KEYS, None, f"attributes of {way.label}")))
    inner += _hiding(walk, value, way)
    attributes = walk.guard(way.to(Fetch.ATTRIBUTE, "__dict__", way.label), Check.TYPE, dict, "attributes", inner)
    around = _of_all_modules(walk, way) if is_first else ()
    inside = (_class(walk, cls, way), attributes, *_calling(walk, way), *around)
    return walk.guard(way, Check.SLOT, expected, fact, inside)


def _attribute(walk: Walk, value: Any, name: str, way: Way) -> Guard:
    """An attribute of a module."""
    is_of_loading = isinstance(value, set) and name in _OF_LOADING - walk.names
    return (only_asked if is_of_loading else Walk.describe)(walk, value, way.member(Fetch.ITEM, name))


def _slot(layers: Layers, value: Any) -> tuple[bool, int]:
    """Whether a value has a slot already, and the number of its slot."""
    is_known = id(value) in layers.slots
    return is_known, layers.slots.setdefault(id(value), len(layers.slots))


def _part(
    walk: Walk, held: dict[str, Any], part: str, way: Way, fetch: Fetch, only: frozenset[str] | None = None
) -> Guard:
    """Tensors or children: their names in order, and each of them; or some of them alone."""
    inside, inner = way.to(fetch, part, way.label), list[Guard]()
    if only is None:
        keys = tuple(held[part])
        told = inside.to(Fetch.KEYS, None, f"{part} of {way.label or 'the module'}")
        inner.append(walk.guard(told, Check.PLAIN, keys, f"{keys}"))
    counting = [name for name in held[part] if only is None or name in only]
    inner += [_held_in_part(walk, held[part][name], way.member(Fetch.ITEM, name)) for name in counting]
    return walk.guard(inside, Check.TYPE, type(held[part]), part, inner)


def _hooks(walk: Walk, layers: Layers, hooks: Any, way: Way) -> Guard:
    """How many hooks there are; if there are any, the module runs as written."""
    if hooks:
        layers.hooked.append(way.label.rpartition(".")[0])
    return _count_of(walk, hooks, way)


def _count_of(walk: Walk, hooks: Any, way: Way) -> Guard:
    return walk.guard(way, Check.LENGTH, (type(hooks), len(hooks)), f"{len(hooks)} hooks")


def _of_all_modules(walk: Walk, way: Way) -> Iterator[Guard]:
    """Hooks of all modules, and whether parametrized tensors are cached."""
    for name in _GLOBAL_HOOKS:
        hooks = vars(torch_module)[name]
        yield _count_of(walk, hooks, way.to(Fetch.KNOWN, hooks, name))
    inside = way.to(Fetch.KNOWN, vars(parametrize), "torch.nn.utils.parametrize")
    caching = walk.describe(parametrize._cache_enabled, inside.member(Fetch.ITEM, "_cache_enabled"))
    yield walk.guard(inside, Check.TYPE, dict, "parametrizations", (caching,))


def tensor_of_module(walk: Walk, layers: Layers, value: Any, way: Way, inner: Iterable[Guard] = ()) -> Guard:
    """A tensor that a served module holds, or that a function uses; `inner` are the guards of its attributes."""
    is_known, slot = _slot(layers, value)
    if not is_known:
        layers.tensors.append((slot, way.label, isinstance(value, torch.nn.Parameter)))
    return walk.guard(way, Check.SLOT, (None, slot), f"a tensor in {slot}", inner)
