"""A tensor with an owner, by hand; and the same with one fault each, as authors of such types make them."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map


class Owned(torch.Tensor):
    """The faultless twin: every result has the owner of the first argument that has one."""

    owner = "nobody"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return cls.run(func, types, args, kwargs or {})

    @classmethod
    def run(cls, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        leaves, _ = tree_flatten((args, kwargs))
        owners = [leaf.owner for leaf in leaves if isinstance(leaf, Owned)]
        result = super().__torch_function__(func, types, args, kwargs)
        return tree_map(lambda leaf: owned(leaf, owners[0], cls) if owners else leaf, result)


def owned(leaf: Any, owner: str, cls: type = Owned) -> Any:
    if isinstance(leaf, torch.Tensor):
        leaf = leaf if isinstance(leaf, cls) else leaf.as_subclass(cls)
        leaf.owner = owner
    return leaf


T = torch.Tensor


def _unexpected(go: Any, args: Any, kwargs: Any, name: str) -> Any:
    if name in kwargs:
        raise TypeError(f"got an unexpected keyword argument {name!r}")
    return go(*args, **kwargs)


def _ignored(go: Any, args: Any, kwargs: Any, name: str) -> Any:
    return go(*args, **{key: value for key, value in kwargs.items() if key != name})


def _spoilt(go: Any, args: Any, kwargs: Any) -> Any:
    with torch._C.DisableTorchFunctionSubclass():
        args[0].as_subclass(T).add_(1)
    return go(*args, **kwargs)


def _spoilt_owner(go: Any, args: Any, kwargs: Any) -> Any:
    result = go(*args, **kwargs)
    args[0].owner = "another"
    return result


def _nothing_set(go: Any, args: Any, kwargs: Any) -> Any:
    return go(args[0].clone(), *args[1:], **kwargs)


def _not_with(go: Any, args: Any, kwargs: Any, name: str, error: Exception) -> Any:
    if name in kwargs:
        raise error
    return go(*args, **kwargs)


def _raises(go: Any, args: Any, kwargs: Any) -> Any:
    raise NotImplementedError("nobody thought of it")


FAULTS: dict[str, tuple[str, Any, str, Any]] = {
    # name: (family, function, where it must be reported, fault)
    "alpha of add": ("add", torch.add, "signatures", lambda go, a, k: _unexpected(go, a, k, "alpha")),
    "alpha of sub": ("sub", T.sub, "signatures", lambda go, a, k: _unexpected(go, a, k, "alpha")),
    "rounding mode": ("div", torch.div, "signatures", lambda go, a, k: _unexpected(go, a, k, "rounding_mode")),
    "ignored alpha": ("add", T.add, "wrong", lambda go, a, k: _ignored(go, a, k, "alpha")),
    "ignored keepdim": ("amax", torch.amax, "wrong", lambda go, a, k: _ignored(go, a, k, "keepdim")),
    "reflected add": ("add", T.__radd__, "disagreeing", lambda go, a, k: go(*a) + 1),
    "reflected sub": ("sub", torch.rsub, "disagreeing", lambda go, a, k: -go(*a, **k)),
    "lost owner": ("mul", torch.mul, "wrong", lambda go, a, k: go(*a).as_subclass(T)),
    "owner of an alias": ("abs", torch.absolute, "disagreeing", lambda go, a, k: go(*a).as_subclass(T)),
    "another owner": ("cat", torch.cat, "wrong", lambda go, a, k: owned(go(*a, **k), "another")),
    "value": ("exp", torch.exp, "wrong", lambda go, a, k: go(*a) * 1.01),
    "shape": ("trace", torch.trace, "wrong", lambda go, a, k: go(*a).reshape(1)),
    "dtype": ("sqrt", torch.sqrt, "wrong", lambda go, a, k: go(*a).float()),
    "transposed copy": ("transpose", torch.transpose, "wrong", lambda go, a, k: go(*a).clone()),
    "item copy": ("select", T.select, "wrong", lambda go, a, k: go(*a).clone()),
    "in place elsewhere": ("mul", T.mul_, "wrong", lambda go, a, k: go(a[0].clone(), *a[1:])),
    "method missing": ("log", T.log, "disagreeing", _raises),
    "alias missing": ("expm1", torch.special.expm1, "failing", _raises),
    "as the second": ("atan2", torch.atan2, "wrong", lambda go, a, k: go(*a) + (not isinstance(a[0], Owned))),
    "spoilt argument": ("neg", torch.neg, "wrong", _spoilt),
    "spoilt owner": ("tan", torch.tan, "wrong", _spoilt_owner),
    "element not set": ("__setitem__", T.__setitem__, "wrong", _nothing_set),
    "fails with alpha": (
        "sub",
        torch.sub,
        "failing",
        lambda go, a, k: _not_with(go, a, k, "alpha", ValueError("len(kwargs) must equal 0")),
    ),
    "fails with dim": (
        "amin",
        torch.amin,
        "failing",
        lambda go, a, k: _not_with(go, a, k, "keepdim", TypeError("no implementation found for torch.x.keepdim")),
    ),
    "attribute": ("T", T.T.__get__, "wrong", lambda go, a, k: a[0]),
    "number": ("numel", torch.numel, "wrong", lambda go, a, k: go(*a) + 1),
    "one of two results": ("aminmax", torch.aminmax, "wrong", lambda go, a, k: go(*a, **k)[0]),
    "comparison": ("eq", T.__eq__, "wrong", lambda go, a, k: a[0] is a[1]),
}


def with_fault(function: Any, fault: Any) -> type[Owned]:
    """The type with a fault in one function."""

    class Faulty(Owned):
        @classmethod
        def run(cls, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
            def go(*given: Any, **named: Any) -> Any:
                return super(Faulty, cls).run(func, types, given, named)

            return fault(go, args, kwargs) if func == function else go(*args, **kwargs)

    if function == T.__radd__:  # PyTorch calls it add: only the class itself can have another
        Faulty.__radd__ = lambda self, other: fault(torch.add, (self, other), {})
    return Faulty


def sample(cls: type[Owned] = Owned) -> Any:
    generator = torch.Generator().manual_seed(0)
    return owned((torch.rand(3, 3, generator=generator, dtype=torch.float64) + 0.2).as_subclass(cls), "me", cls)
