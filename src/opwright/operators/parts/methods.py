"""Operators as methods: found through an object, an operator is bound to it, as a function is.

The methods of one object have kernels of their own, or those on disk of an object in the same state. They live as long
as the object does.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from opwright.binding.environment import is_compiling, is_recorded
from opwright.binding.fallbacks import Fallbacks
from opwright.binding.variants.states import Outside
from opwright.errors import NoKernel
from opwright.samples import SampleFactory
from opwright.toolchain.process.forks import Lock
from opwright.tracing.interface.callables import bound_to
from opwright.tracing.interface.place import place_of
from opwright.tracing.interface.signature import Signature, read_signature


class BoundOperator:
    """A method of an object, which it keeps alive as any bound method does; it has all that the operator has.

    Attributes:
        __self__: The object.
        operator: The operator that serves its calls.
    """

    __slots__ = ("__self__", "operator")

    def __init__(self, owner: Any, operator: Any) -> None:
        self.__self__ = owner
        self.operator = operator

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operator."""
        return self.operator(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """What the operator has."""
        return getattr(self.operator, name)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same method of the same object."""
        return isinstance(other, BoundOperator) and self.operator is other.operator

    def __hash__(self) -> int:
        """The same for the same method."""
        return hash(self.operator)

    def __repr__(self) -> str:
        return f"<bound {self.operator!r} of {self.__self__!r}>"


class Methods:
    """The operators that are methods of objects, each made once.

    Args:
        make: Makes the operator of a function that is bound to an object.
    """

    def __init__(self, make: Callable[[Callable[..., Any]], Any]) -> None:
        self._make = make
        self._lock = Lock()
        self._found: dict[int, tuple[weakref.ref[Any], Any]] = {}

    def of(self, owner: Any, function: types.FunctionType) -> Any:
        """The method of an object.

        Raises:
            TypeError: If there are no weak references to the object.
        """
        found = self._found.get(id(owner))
        if found is not None and found[0]() is owner:
            return found[1]
        with self._lock:
            key, made = id(owner), self._make(bound_to(owner, function))
            self._found[key] = weakref.ref(owner, lambda gone: self._forget(key, gone)), made
            return made

    def _forget(self, key: int, gone: weakref.ref[Any]) -> None:
        if (found := self._found.get(key)) is not None and found[0] is gone:
            del self._found[key]


def unregistered(reference: Callable[..., Any], mutates: Sequence[str]) -> Signature:
    """The signature of a method: a name at the dispatcher is for one function, and each object has its own."""
    return replace(read_signature(reference, mutates), structured=True)


class Binds:
    """The part of an operator that is a method where it is found through an object."""

    reference: Callable[..., Any]
    _fallbacks: Fallbacks
    _methods: Methods | None = None
    _make_relative: Callable[..., Any]
    samples: SampleFactory | None

    def _bind(self, mutates: Sequence[str], freeze: Sequence[str], reference: Callable[..., Any]) -> Any:
        """The operator of a function that is bound to an object."""
        outside = Outside(reference.reads_from, freeze)  # type: ignore[attr-defined]
        signature = unregistered(reference, mutates)
        options = {"mutates": mutates, "freeze": freeze, "samples": self.samples}
        made = self._make_relative(reference, signature=signature, outside=outside, **options)
        if not mutates:
            made.let_capture(freeze)
        return made

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        """The operator as a method of an object; itself for a class, and if it was not made of a function."""
        if owner is None or self._methods is None:
            return self
        function = self.reference
        assert isinstance(function, types.FunctionType)
        if is_compiling() or is_recorded():
            return types.MethodType(function, owner)
        try:
            return BoundOperator(owner, self._methods.of(owner, function))
        except TypeError:
            fact = f"there are no weak references to a {type(owner).__name__}, whose method it is"
            self._fallbacks.tell(NoKernel(fact, place=place_of(function), hint="add '__weakref__' to its __slots__"))
            return types.MethodType(function, owner)
