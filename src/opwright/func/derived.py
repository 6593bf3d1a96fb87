"""Operators whose functions are transforms of other functions, each made once.

vmap(grad(f))   the operator of `torch.func.vmap(torch.func.grad(f))`, traced as a whole: no level of it is left
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any

from opwright.api.operator import Operator
from opwright.binding.environment import is_compiling_or_exporting, is_recorded
from opwright.binding.variants.states import Outside, State
from opwright.errors import NoKernel, UndeclaredMutation
from opwright.func.opened import NOTHING, Opened, opened
from opwright.introspection import signature_of
from opwright.toolchain.process.forks import Lock
from opwright.tracing.interface.signature import Kind, Parameter, Signature

_MOST_REMEMBERED = 256


@dataclass(frozen=True, slots=True)
class Transform:
    """What is done to a function.

    Attributes:
        name: Its name in `torch.func`.
        options: Everything about it but the function.
        apply: Does it, with torch alone.
    """

    name: str
    options: Hashable
    apply: Callable[[Callable[..., Any]], Callable[..., Any]] = field(compare=False)


Transforms = tuple[Transform, ...]
ITSELF = Transform("call", (), lambda function: function)


class TransformedReference:
    """A function with transforms of `torch.func`, the first of them innermost.

    Args:
        function: What is transformed, taken apart; its data is the first argument, if it has any.
        by: The transforms.
    """

    def __init__(self, function: Opened, by: Transforms) -> None:
        self.__wrapped__ = function.close(NOTHING)
        self.__name__ = "_".join([*[transform.name for transform in reversed(by)], _name_of(self.__wrapped__)])
        self.origin = replace(function, data=NOTHING), by  # the data of one call are not kept
        self.takes_data = function.data is not NOTHING

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it.

        Raises:
            NoKernel: In a trace, if it changes an argument.
        """
        function, by = self.origin
        data, args = (args[0], args[1:]) if self.takes_data else (NOTHING, args)
        try:
            return applied(function.close(data), by)(*args, **kwargs)
        except (UndeclaredMutation, RuntimeError) as error:
            is_told = isinstance(error, UndeclaredMutation) or "leaf Variable that requires grad" in str(error)
            if not (is_told and is_recorded()):
                raise
            raise NoKernel("the function changes an argument", hint="change a copy, and return it") from error


class Closing:
    """A transform of a function that closes over tensors, which its operator takes as arguments at every call."""

    def __init__(self, function: Callable[..., Any], by: Transforms) -> None:
        self.__wrapped__ = function
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self.origin = function, by

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the operator, or torch's own transform where a compiler or a trace looks on."""
        function, by = self.origin
        if is_seen_through():
            return applied(function, by)(*args, **kwargs)
        operator, before = _served(function, by)
        return operator(*before, *args, **kwargs)

    @property
    def operator(self) -> Operator:
        """The operator that serves it now."""
        return _served(*self.origin)[0]


def derived(function: Callable[..., Any], transform: Transform) -> Callable[..., Any]:
    """The operator of a transform of a function; while a compiler or a trace looks on, torch's own transform."""
    if is_seen_through():
        return transform.apply(function)
    operator, before = served(function, transform)
    return Closing(*_chain(function, transform)) if before else operator


def operator_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """The operator of a function, for transforms of torch's own; itself, if it is one."""
    return derived(function, ITSELF)


def served(function: Callable[..., Any], transform: Transform) -> tuple[Operator, tuple[Any, ...]]:
    """The operator of a transform of a function, and what it is given before its arguments."""
    if transform is ITSELF and isinstance(function, Operator):
        return function, ()
    return _served(*_chain(function, transform))


def _chain(function: Callable[..., Any], transform: Transform) -> tuple[Callable[..., Any], Transforms]:
    """What is transformed in the end, and by what."""
    base, by = _origin(function)
    return base, by if by and transform is ITSELF else (*by, transform)


def _served(base: Callable[..., Any], by: Transforms) -> tuple[Operator, tuple[Any, ...]]:
    found = opened(base)
    return _operator(found, by), () if found.data is NOTHING else (found.data,)


def is_seen_through() -> bool:
    """Whether a compiler, an exporter or a trace records the operations of what runs now."""
    return is_compiling_or_exporting() or is_recorded()


def applied(function: Callable[..., Any], by: Transforms) -> Callable[..., Any]:
    """The function with the transforms, by torch alone."""
    for transform in by:
        function = transform.apply(function)
    return function


def _origin(function: Any) -> tuple[Callable[..., Any], Transforms]:
    """What was transformed, and by what."""
    if isinstance(function, Closing):
        return function.origin
    if isinstance(function, Operator) and isinstance(function.reference, TransformedReference):
        inner, by = function.reference.origin
        return inner.close(NOTHING), by
    return function, ()


_remembered: OrderedDict[Hashable, Operator] = OrderedDict()
_lock = Lock()


def _operator(function: Opened, by: Transforms) -> Operator:
    """The operator of a function with transforms; those used last are remembered."""
    key = function.key, by
    with _lock:
        found = _remembered.get(key)
        if found is None:
            applied(function.close(NOTHING), by)  # raises where torch refuses the options
            found = _remembered[key] = _made(function, by)
            while len(_remembered) > _MOST_REMEMBERED:
                _remembered.popitem(last=False)
        else:
            _remembered.move_to_end(key)
        return found


def _made(function: Opened, by: Transforms) -> Operator:
    reference = TransformedReference(function, by)
    inner = reference.__wrapped__
    is_operator = isinstance(inner, Operator)
    operator: Operator

    def identity(state: State) -> str | None:
        known = operator._recorded_under(state)
        return known and f"{known} {[(transform.name, transform.options) for transform in by]}"

    operator = Operator(
        reference,
        signature=_signature(function, inner),
        save=inner.save if is_operator else "auto",
        outside=inner._outside if is_operator else Outside(inner),
        identity=identity,
    )
    return operator


def _signature(function: Opened, inner: Callable[..., Any]) -> Signature:
    """The data, if there are any, and the arguments as they are given: transforms go by their positions."""
    closed = Parameter("closed", Kind.STRUCTURE, False, type=None)
    args = Parameter("args", Kind.STRUCTURE, False, type=None, variadic=True, members=_names_of(inner))
    kwargs = Parameter("kwargs", Kind.STRUCTURE, False, keyword_only=True, type=None, variadic=True)
    return Signature((args, kwargs) if function.data is NOTHING else (closed, args, kwargs), None)


def _names_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the parameters that take arguments by position."""
    try:
        parameters = signature_of(function).parameters.values()
    except (ValueError, TypeError):
        return ()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(parameter.name for parameter in parameters if parameter.kind in kinds)


def _name_of(function: Any) -> str:
    return str(getattr(function, "__name__", None) or type(function).__name__).strip("<>")  # a lambda's is <lambda>
