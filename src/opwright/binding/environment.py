"""Whether a call is plain: ordinary dense tensors, and no active mode or transform.

Under a transform, a mode, autocast, forward-mode AD or a compiler, PyTorch must see the operations of the reference; a
kernel would silently hide them. The tests here use private hooks of torch; each costs about 0.03 µs, and
tests/binding/test_environment.py tests each of them with the installed torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.autograd import forward_ad
from torch.autograd.graph import Node
from torch.nn import Parameter
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

PLAIN_TYPES = (torch.Tensor, Parameter)
SERVED_DEFAULTS = (torch.float32, torch.float64)  # default dtypes that kernels are derived under; states compare which
_dispatch_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._len_torch_function_stack
_default_dtype = torch.get_default_dtype
_function_transforms = torch._C._are_functorch_transforms_active
_autocast = torch._C._is_any_autocast_enabled
_jit_trace = torch._C._get_tracing_state
_will_run = torch._C._will_engine_execute_node
is_compiling = torch.compiler.is_dynamo_compiling
is_compiling_or_exporting = torch.compiler.is_compiling


def is_quiet() -> bool:
    """Whether nothing intercepts torch operations on this thread, and the default dtype is one that kernels serve."""
    return not (is_transformed() or is_overheard())


def is_overheard() -> bool:
    """Whether a mode, autocast or a compiler must see the operations of the reference one by one."""
    return bool(
        is_compiling()
        or _dispatch_modes()
        or _function_modes()
        or _default_dtype() not in SERVED_DEFAULTS
        or _autocast()
        or _jit_trace()
    )


def is_recorded() -> bool:
    """Whether a dispatch mode is active, such as a compiler's or an exporter's."""
    return bool(_dispatch_modes()) and any(
        not isinstance(mode, FakeTensorMode) for mode in _get_current_dispatch_mode_stack()
    )


def is_transformed() -> bool:
    """Whether a function transform or a level of forward-mode AD is active."""
    return bool(_function_transforms() or forward_ad._current_level >= 0)


def hooks_of_saved_tensors() -> tuple[Any, ...]:
    """The pair of functions, such as a checkpoint's, that is called with each saved tensor; empty if there is none."""
    return torch._C._autograd._top_saved_tensors_default_hooks(True) or ()


def is_asked_for(node: Node | None) -> bool:
    """Whether the current backward pass reaches a node; `ctx.needs_input_grad` is that of the forward pass."""
    try:
        return node is not None and _will_run(node)
    except RuntimeError:  # it is a leaf, whose gradient `torch.autograd.grad` returns; or it is unknown
        return True


def recorded_below_autograd() -> AbstractContextManager[None]:
    """Enable autograd also in a call below the autograd key, where it would silently record nothing."""
    return torch._C._SetExcludeDispatchKeyGuard(torch._C.DispatchKey.AutogradFunctionality, False)


def require_gradients(arguments: Iterable[object]) -> bool:
    """Whether one of them requires a gradient, unless this is below the autograd key: who called has recorded it."""
    is_below = torch._C._dispatch_tls_is_dispatch_key_excluded(torch._C.DispatchKey.AutogradFunctionality)
    return not is_below and any(isinstance(each, torch.Tensor) and each.requires_grad for each in arguments)


@contextmanager
def recording() -> Iterator[None]:
    """Enable gradients, also below the autograd key."""
    with recorded_below_autograd(), torch.enable_grad():
        yield


def are_abstract(tensors: Iterable[object]) -> bool:
    """Whether one of them has no data: fake, or on the device "meta"."""
    return any(isinstance(t, torch.Tensor) and (t.is_meta or isinstance(t, FakeTensor)) for t in tensors)


def are_plain(tensors: Iterable[object]) -> bool:
    """Whether all are tensors and none is of a subclass.

    Conjugate and negative bits do not matter: torch's dispatcher resolves them before a kernel sees the tensor.
    """
    for tensor in tensors:  # noqa: SIM110 - all() with a generator costs three times as much
        if type(tensor) not in PLAIN_TYPES:
            return False
    return True
