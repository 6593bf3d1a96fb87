"""A tensor that notes the calls it is given to."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.nn import Parameter
from torch.overrides import get_default_nowrap_functions

from opwright.tensors.logging.call import Call, call_of, name_of
from opwright.tensors.logging.noting import is_noted, take_note


class Logging(torch.Tensor):
    """A tensor that prints each call of a torch function that it is given to; what is computed is logged in turn.

        class Logged(opwright.tensors.Logging): ...

        Logged([1.0, 2.0]) + 1      # prints: torch.Tensor.add(Logged[2] float32, 1)

    A function that is made of others is one call, and questions such as `x.shape` are none. Override `note` to keep
    calls instead of printing them; what `note` itself calls, the repr of tensors included, is not noted.
    """

    def __new__(cls, data: Any, **options: Any) -> Any:
        """A tensor in the same memory if `data` is one, and a new one of numbers; options are those of `as_tensor`."""
        return torch.as_tensor(data, **options).as_subclass(cls)

    @classmethod
    def note(cls, call: Call) -> None:
        """Print a call, before it is made."""
        print(call)

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Note a call and make it."""
        kwargs = kwargs or {}
        if not all(issubclass(cls, other) for other in types):
            return NotImplemented
        if is_noted(func):
            take_note(cls.note, call_of(name_of(func), args, kwargs))
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **kwargs)
            return result if func in get_default_nowrap_functions() else cls._logged(result)

    @classmethod
    def _logged(cls, result: Any) -> Any:
        """The same with plain tensors as logged ones; wrappers keep their own type."""
        if type(result) in (torch.Tensor, Parameter) or (isinstance(result, Logging) and type(result) is not cls):
            return result.as_subclass(cls)
        if isinstance(result, (tuple, list)):
            members = [cls._logged(member) for member in result]
            return type(result)(*members) if hasattr(result, "_fields") else type(result)(members)
        return result

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """A copy, which is not noted.

        Raises:
            RuntimeError: If it is no leaf, as for every tensor.
        """
        if id(self) in memo:
            return memo[id(self)]
        with torch._C.DisableTorchFunction():
            if not self.is_leaf:
                raise RuntimeError("Only Tensors created explicitly by the user support the deepcopy protocol")
            plain = self.detach().as_subclass(torch.Tensor)
            twin = copy.deepcopy(plain, memo).as_subclass(type(self)).requires_grad_(self.requires_grad)
            memo[id(self)] = twin
            twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
            if self.grad is not None:
                twin.grad = copy.deepcopy(self.grad, memo)
        return twin

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        """Its values; nothing that this calls is noted."""
        with torch._C.DisableTorchFunction():
            return f"{type(self).__name__}({self.as_subclass(torch.Tensor).detach()!r})"
