"""TorchScript compiles a call of an operator as a call of its name at the dispatcher."""

from __future__ import annotations

import weakref
from typing import Any

from torch.jit import _builtins

_scripted: dict[str, int] = {}  # which object a name stands for


def let_script_call(operator: Any, name: str) -> None:
    """Have `torch.jit.script` call an operator by its name, for as long as the object lives and has the name.

    Args:
        operator: What users call.
        name: "namespace::name"; another operator of the same name loses it.
    """
    if name in _scripted:
        _forget(name, _scripted[name])
    _scripted[name] = id(operator)
    _builtins._register_builtin(operator, name)
    weakref.finalize(operator, _forget, name, id(operator)).atexit = False


def _forget(name: str, identity: int) -> None:
    """Another object may have the place in memory next."""
    if _scripted.get(name) == identity:
        del _scripted[name]
        _builtins._get_builtin_table().pop(identity, None)
