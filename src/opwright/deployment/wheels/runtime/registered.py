"""Kernels of libraries that are loaded, as the dispatcher knows them."""

from __future__ import annotations

from typing import Any

import torch

_passing: list[torch.library.Library] = []  # what is registered lasts as long as its library does


def find_kernel(namespace: str, name: str) -> Any:
    """A kernel of the library that is loaded. It records no gradients, so the key of autograd is passed over."""
    passing = torch.library.Library(namespace, "FRAGMENT")
    passing.impl(name, torch.library.fallthrough_kernel, "Autograd")
    _passing.append(passing)
    return getattr(getattr(torch.ops, namespace), name).default


def is_declared(name: str) -> bool:
    """Whether there is an operator of that name."""
    namespace, short = name.split("::")
    return hasattr(getattr(torch.ops, namespace), short)
