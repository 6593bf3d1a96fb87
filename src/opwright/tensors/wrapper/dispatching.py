"""What runs an operation on wrappers: its rule, and what its schema says about memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.utils._python_dispatch import return_and_correct_aliasing
from torch.utils._pytree import tree_leaves

from opwright.binding.serving.inside import AsWritten
from opwright.errors import WrapperRefused
from opwright.tensors.wrapper.opening import Args, Held, Kwargs, Operation, wrapped
from opwright.tensors.wrapper.rules import Rule, densify, name_of, reduction, rewrap, tensors_in

_SEEN_THROUGH = (FakeTensor, FunctionalTensor)


def knows(kind: type, types: Sequence[type]) -> bool:
    """Whether a type answers for others: its superclasses, and what compilers put into wrappers."""
    return all(issubclass(kind, other) or issubclass(other, _SEEN_THROUGH) for other in types)


def plan(kind: type[Held], rule: Rule, operation: OpOverload) -> Rule:
    """The rule, with results that share memory with arguments as the schema of the operation says."""
    returns = [returned.alias_info for returned in operation._schema.returns]
    arguments = [argument.alias_info for argument in operation._schema.arguments]
    if any(alias is not None and alias.is_write for alias in arguments):
        writing = rewrap if rule is reduction else rule
        gives_arguments = any(alias is not None and alias.is_write for alias in returns)
        return _changing(writing, gives_arguments)
    if any(alias is not None for alias in returns):
        return _viewing(rule)
    return straight(kind, operation) if rule is rewrap and len(kind.names.data) == 1 else rule


def straight(kind: type[Held], operation: OpOverload) -> Rule:
    """`rewrap` of an operation whose tensors stand in a row, around one tensor each and of the one type.

    That is most calls of elementary operations, whose cost beside PyTorch's own is what a wrapper costs; all others
    take the general way.
    """
    call, metadata_of, made = operation._op, kind.metadata_of, kind.made
    (name,) = kind.names.data
    others = (Held, list, tuple)

    def run(kind: type[Held], operation: Operation, args: Args, kwargs: Kwargs) -> Any:
        inner, met = [], []
        for value in args:
            if type(value) is kind:
                inner.append(getattr(value, name))
                met.append(value)
            elif isinstance(value, others):
                return rewrap(kind, operation, args, kwargs)
            else:
                inner.append(value)
        if kwargs or not met:
            return rewrap(kind, operation, args, kwargs)
        result = call(*inner)
        if isinstance(result, torch.Tensor):
            return made((result,), metadata_of(met))
        return wrapped(kind, [result], lambda: metadata_of(met))

    return run


def is_lazy(tensor: torch.Tensor) -> bool:
    """Whether a tensor is conjugated or negated lazily."""
    return tensor.is_conj() or tensor.is_neg()


def lazily_right() -> Any:
    """A context in which operations see that a tensor is conjugated or negated lazily, as they do outside of dispatch.

    Inside of `__torch_dispatch__` torch excludes the keys that do this, because it has done it for the wrapper; what
    that holds may be `z.conj()` still.
    """
    excluded = torch._C._dispatch_tls_local_exclude_set()
    for key in (torch._C.DispatchKey.Conjugate, torch._C.DispatchKey.Negative, torch._C.DispatchKey.ZeroTensor):
        excluded = excluded.remove(key)
    return torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), excluded)


def _viewing(rule: Rule) -> Rule:
    """Views are views of the same memory, as autograd and compilers see it."""

    def run(kind: type[Held], operation: Operation, args: Args, kwargs: Kwargs) -> Any:
        result = rule(kind, operation, args, kwargs)
        first = next(tensors_in(args), None)
        if result is NotImplemented or any(type(tensor) is not type(first) for tensor in tensors_in(result)):
            return result
        return return_and_correct_aliasing(operation, tuple(args), dict(kwargs), result)

    return run


def _changing(rule: Rule, gives_arguments: bool) -> Rule:
    """What changes arguments changes the tensors inside, and returns the arguments themselves."""

    def run(kind: type[Held], operation: Operation, args: Args, kwargs: Kwargs) -> Any:
        changed = _changed(operation, args, kwargs)
        held = [tensor for tensor in changed if isinstance(tensor, Held)]
        if (held and rule is densify) or (len(held) < len(changed) and rule is rewrap and len(kind.names.data) > 1):
            raise WrapperRefused(
                f"{kind.__name__} has no rule for {name_of(operation)}, which changes a tensor",
                hint="give it a function that changes what is inside",
            )
        result = rule(kind, operation, args, kwargs)
        if result is not NotImplemented and gives_arguments:
            result = return_and_correct_aliasing(operation, tuple(args), dict(kwargs), result)
        for wrapper in held:
            _ensure_same_shape(wrapper, operation)
        return result

    return run


def _changed(operation: Any, args: Args, kwargs: Kwargs) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    for position, argument in enumerate(operation._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[position] if position < len(args) else kwargs.get(argument.name)
            found += tensors_in(value)
    return found


def _ensure_same_shape(wrapper: Any, operation: Operation) -> None:
    inside = getattr(wrapper, wrapper.names.data[0])
    if inside.shape != wrapper.shape and len(wrapper.names.data) == 1:
        raise WrapperRefused(
            f"{name_of(operation)} changed what {type(wrapper).__name__} holds from {tuple(wrapper.shape)} to "
            f"{tuple(inside.shape)}, and torch cannot tell the wrapper",
            hint="give an out= of the right size",
        )


def as_written(kind: type[Held], operation: Operation, args: Args, kwargs: Kwargs) -> Any:
    """The rule for operators of a type that says nothing about them: it may know the operations that they are made of.

    Raises:
        AsWritten: Always.
    """
    raise AsWritten


def in_memory_of_its_own(operator: Operation, name: str) -> Operation:
    """An operator that raises `AsWritten` if a result lies in the memory of an argument."""

    def run(*args: Any, **kwargs: Any) -> Any:
        result = operator(*args, **kwargs)
        given = {_memory(tensor) for tensor in tensors_in((args, kwargs))}
        if any(_memory(tensor) in given for tensor in tensors_in(tree_leaves(result))):
            raise AsWritten
        return result

    run.name = name  # type: ignore[attr-defined]  # for errors
    return run


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata if tensor.layout is torch.strided else id(tensor)
