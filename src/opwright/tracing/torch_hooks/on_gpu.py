"""Tracing a call with GPU tensors, using fake tensors on the CPU.

The trace is the same on every device, and fake GPU tensors need a PyTorch with CUDA. So tensors claim to be on a GPU,
new tensors "on the GPU" are made where they are, and the launcher allocates on the GPU of the call. Moving a tensor
between devices, or asking for the index of its GPU, is refused. Torch's own functions see the real device.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode

from opwright.errors import NoKernel, UntraceableReference
from opwright.tracing.callers import is_outside
from opwright.tracing.effects.watch import meets
from opwright.tracing.torch_hooks.exchanged import Exchanged

_GPU = torch.device("cuda")
_HERE = torch.device("cpu")
_ASKED: Any = FakeTensor.device


def _getter(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(torch.Tensor, name).__get__
    return found


_ANSWERS: Mapping[Callable[..., Any], bool] = {
    _getter("is_cuda"): True,
    _getter("is_cpu"): False,
}
_MAKERS = frozenset(
    getattr(torch, name)
    for name in (
        *("arange", "as_tensor", "empty", "eye", "full", "linspace", "logspace", "ones", "rand", "randint", "randn"),
        *("randperm", "scalar_tensor", "tensor", "tril_indices", "triu_indices", "zeros"),
    )
)
_MOVES_BY_NAME = frozenset({torch.Tensor.to})


@contextmanager
def on_gpu(name: str) -> Iterator[None]:
    """Answer a reference, on this thread, as if all tensors were on a GPU.

    Args:
        name: What the reference is called.
    """
    with _told.on_this_thread(True), _OnGpu(name):
        yield


def _device(tensor: FakeTensor) -> torch.device:
    found: torch.device = _GPU if _told.here() and is_outside(sys._getframe(1)) else _ASKED.fget(tensor)
    return found


_told = Exchanged[bool]({(FakeTensor, "device"): property(_device)})  # it asks no function mode


class _OnGpu(TorchFunctionMode):
    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the function with the device of the fake tensors instead of those that it names.

        Raises:
            NoKernel: If it puts a tensor anywhere else than on the GPU of the call.
            UntraceableReference: If it asks which GPU that is.
        """
        kwargs = kwargs or {}
        if not is_outside(sys._getframe(1)):
            return func(*args, **kwargs)
        if func in _ANSWERS:
            return _ANSWERS[func]
        if func is torch.Tensor.get_device:
            fact = f"{self._name} asks which GPU a tensor is on, which differs from call to call"
            hint = "use new_zeros, zeros_like and the like, which stay on a tensor's device"
            raise meets(UntraceableReference(fact, hint=hint))
        if func is torch.Tensor.cpu:
            raise meets(self._moved("cpu"))
        if func is torch.Tensor.cuda:
            return args[0]
        named = func in _MOVES_BY_NAME
        exchanged = [self._exchanged(value, named and position > 0) for position, value in enumerate(args)]
        options = {name: self._exchanged(value, name == "device") for name, value in kwargs.items()}
        made = func(*exchanged, **options)
        if func in _MAKERS and kwargs.get("device") is None and made.dim() > 0:
            fact = f"{self._name} makes a tensor on the processor where its arguments are on a GPU"
            raise meets(NoKernel(fact, hint="give it device= of an argument"))
        return made

    def _exchanged(self, value: Any, may_be_name: bool) -> Any:
        """The replacement of a device; anything else unchanged."""
        if not isinstance(value, torch.device) and not (may_be_name and isinstance(value, str)):
            return value
        device = torch.device(value)
        if device.type != _GPU.type or device.index is not None:
            raise self._moved(str(device))
        return _HERE

    def _moved(self, device: str) -> NoKernel:
        return NoKernel(
            f"{self._name} puts a tensor on '{device}', and kernels keep to the GPU of the call",
            hint="move the tensor outside of the operator",
        )
