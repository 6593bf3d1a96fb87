"""Queries that a reference must not make in a trace, because the answer would be that of the fake tensors.

A fake tensor has no values, and has strides, history and address of its own; a trace does not see assignments to
`.data`. Only code outside of torch and this package is checked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from opwright.errors import UntraceableReference
from opwright.tracing.callers import behind_modes, is_outside
from opwright.tracing.effects.watch import meets, paused
from opwright.tracing.interface.memory import memory_of
from opwright.tracing.recording.local_variables import LocalVariables
from opwright.tracing.torch_hooks.functorch import wrapped_by_levels


def _asked(names: str, *functions: Callable[..., Any]) -> list[Callable[..., Any]]:
    """Methods and properties of a tensor by name, as a function mode sees them, and functions."""
    members = [getattr(torch.Tensor, name) for name in names.split() if hasattr(torch.Tensor, name)]
    return [*(member if callable(member) else member.__get__ for member in members), *functions]


_QUESTIONS: Mapping[str, Iterable[Callable[..., Any]]] = {
    "hands a tensor to NumPy, which cannot be traced": _asked("numpy __array__ __dlpack__ __dlpack_device__"),
    "writes a tensor as text, which is another one at each call": _asked("__repr__ __format__"),
    "asks how a tensor lies in memory, which differs from call to call": _asked(
        "is_contiguous stride storage_offset data_ptr untyped_storage storage is_set_to _base _is_view is_shared "
        "is_pinned is_neg is_conj _cdata dim_order",
        *(torch.is_conj, torch.is_neg),
    ),
    "gives a tensor other memory, which a trace does not see": [torch.Tensor.data.__set__],  # type: ignore[attr-defined]
    "asks what autograd knows of a tensor, which differs from call to call": _asked(
        "requires_grad grad grad_fn is_leaf _version is_inference retains_grad _backward_hooks output_nr "
        "_grad _grad_fn grad_dtype _has_grad_dtype_override",
        torch.is_inference,
    ),
}
_COPIES_IF_NEEDED = frozenset(
    (*_asked("contiguous reshape reshape_as flatten ravel resize resize_as"), torch.reshape, torch.flatten, torch.ravel)
)
_ALWAYS_COPIES = frozenset((torch.Tensor.clone, torch.clone))
_FACTS = {question: fact for fact, questions in _QUESTIONS.items() for question in questions}


def may_copy(function: Callable[..., Any], given: Iterable[Any]) -> bool:
    """Whether a function gives a tensor's own memory if that lies so, and else a copy; any may for a memory format."""
    has_format = function not in _ALWAYS_COPIES and any(isinstance(each, torch.memory_format) for each in given)
    return has_format or function in _COPIES_IF_NEEDED


class Listener(TorchFunctionMode):
    """Refuses the queries of a reference that a trace cannot answer.

    Args:
        name: The name of the reference.
        variables: The variables of the reference, found through the callers of torch's functions.

    Attributes:
        shared: The memory of tensors that share it with others in some layouts alone, by its keys.
    """

    def __init__(self, name: str, variables: LocalVariables) -> None:
        super().__init__()
        self.shared = set[int]()
        self._name = name
        self._variables = variables

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the function unless it is such a query.

        Raises:
            UntraceableReference: If it is.
        """
        caller = behind_modes(sys._getframe(1))
        self._variables.look_for(caller)
        fact = _FACTS.get(func)
        if fact is not None and is_outside(caller):
            raise meets(UntraceableReference(f"{self._name} {fact}", hint="keep this part outside of the operator"))
        with paused():
            result = func(*args, **(kwargs or {}))
        given = (*args, *(kwargs or {}).values())
        if may_copy(func, given):
            tensors = [each for each in (result, *given) if isinstance(each, torch.Tensor)]
            self.shared.update(memory_of(wrapped_by_levels(tensor)) for tensor in tensors)
        return result
