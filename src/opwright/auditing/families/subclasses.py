"""subclasses and modes: they see the operations of a call, and subclasses are preserved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from opwright.auditing.case import Case
from opwright.auditing.judge import Judge
from opwright.auditing.witness import Seen
from opwright.checking.calls import every_gradient, random_gradients, reached


class Logging(torch.Tensor):
    """A tensor that logs its operations."""

    heard: list[str] = []  # noqa: RUF012

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Note and go on."""
        cls.heard.append(getattr(func, "__name__", str(func)))
        return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[no-untyped-call]


class Wrapper(torch.Tensor):
    """A wrapper subclass: a tensor without memory of its own, around another."""

    wrapped: torch.Tensor

    @staticmethod
    def __new__(cls: type[Wrapper], inner: torch.Tensor) -> Wrapper:
        """Wrap a tensor."""
        made: Wrapper = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=inner.device,
            requires_grad=inner.requires_grad,
        )
        return made

    def __init__(self, inner: torch.Tensor) -> None:
        self.wrapped = inner.detach()

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Unwrap, run the operation, and wrap the results."""
        args, kwargs = pytree.tree_map_only(Wrapper, lambda it: it.wrapped, (args, kwargs or {}))
        return pytree.tree_map_only(torch.Tensor, Wrapper, func(*args, **kwargs))


class FunctionsHeard(TorchFunctionMode):
    """Records the torch functions that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Note and go on."""
        self.heard.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


class OperationsHeard(TorchDispatchMode):
    """Records operations at the dispatcher."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.heard: list[str] = []

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Note and go on."""
        self.heard.append(str(func))
        return func(*args, **(kwargs or {}))


def logging_subclass(case: Case) -> Seen:
    """Call the function with tensors that log their operations."""
    inputs = [tensor.as_subclass(Logging) for tensor in case.inputs]
    Logging.heard.clear()
    outputs = case(*inputs)
    return {
        "type of output": [type(output).__name__ for output in outputs],
        "something is heard": bool(Logging.heard),
        "output": [output.as_subclass(torch.Tensor) for output in outputs],
    }


def wrapper_subclass(case: Case) -> Seen:
    """Call the function with wrapper subclasses."""
    outputs = case(*map(Wrapper, case.inputs))
    return {"type of output": [type(output).__name__ for output in outputs], "output": list(map(_inner, outputs))}


def wrapper_subclass_backward(case: Case) -> Seen:
    """Differentiate with respect to wrapper subclasses."""
    leaves = [Wrapper(tensor).requires_grad_() for tensor in case.inputs]
    loss = case.loss(*leaves)
    return {"gradient of input": list(map(_inner, every_gradient(loss, leaves)))}


def function_mode(case: Case) -> Seen:
    """Call the function under a function mode."""
    inputs = case.inputs
    with FunctionsHeard() as mode:
        outputs = case(*inputs)
    return {"something is heard": bool(mode.heard), "output": outputs}


def dispatch_mode(case: Case) -> Seen:
    """Call the function under a dispatch mode."""
    leaves = case.leaves
    with OperationsHeard() as mode:
        outputs = case(*leaves)
    return {"something is heard": bool(mode.heard), "output": [output.detach() for output in outputs]}


def plain_gradient(case: Case, arriving: Callable[[torch.Tensor], torch.Tensor] = torch.clone) -> Seen:
    """Run backward with plain cotangents: the expected result, even where torch loses a wrapped one's conjugate bit."""
    leaves = case.leaves
    outputs = reached(case(*leaves))
    found = every_gradient(outputs, leaves, list(map(arriving, random_gradients(outputs))))
    return {"gradient of input": list(map(_inner, found))}


def dispatch_mode_backward(case: Case) -> Seen:
    """Run only the backward pass under a dispatch mode."""
    leaves = case.leaves
    outputs = reached(case(*leaves))
    cotangents = random_gradients(outputs)
    with OperationsHeard() as mode:
        found = every_gradient(outputs, leaves, cotangents)
    return {"something is heard": bool(mode.heard), "gradient of input": found}


def _inner(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.wrapped if isinstance(tensor, Wrapper) else tensor.detach()


JUDGES = (
    Judge("logging subclass", logging_subclass, differentiates=False),
    Judge("wrapper subclass", wrapper_subclass, differentiates=False),
    Judge("wrapper subclass, backward", wrapper_subclass_backward),
    Judge("wrapper subclass as cotangent", partial(plain_gradient, arriving=Wrapper), expected=plain_gradient),
    Judge("function mode", function_mode, differentiates=False),
    Judge("dispatch mode", dispatch_mode, differentiates=False),
    Judge("dispatch mode, backward", dispatch_mode_backward),
)
