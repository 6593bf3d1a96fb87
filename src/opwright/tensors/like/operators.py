"""Operators: what Python's operators, and functions such as len and float, call on an object that is no tensor.

`x + y` is torch.add(x, y), which asks the types of both; an object that PyTorch does not know gets Python's own turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy
import torch
from torch.overrides import handle_torch_function, resolve_name

from opwright.errors import Unhandled
from opwright.tensors.like.handler import is_tensor_like, overrides

Method = Callable[..., Any]
_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter, bool, int, float, complex, str, type(None)})
_MANY = frozenset({list, tuple})


def ask(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Ask the types of arguments to serve a function, in PyTorch's order, also where its own parser would refuse.

    Raises:
        Unhandled: All returned NotImplemented.
    """
    if torch._C._is_torch_function_mode_enabled():
        asked = [each for each in _flat(args, kwargs) if is_tensor_like(each) and overrides(type(each))]
        return handle_torch_function(function, asked, *args, **kwargs)
    types = _types_of(args, kwargs)
    for each in types:
        result = each.__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    names = ", ".join(each.__name__ for each in types)
    raise Unhandled(f"{resolve_name(function)} is handled by none of {names}", hint="give one of them a handler")


def _types_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
    """The types to ask, in order; an object beside numbers and tensors, which most calls have, is found first."""
    only: Any = None
    for each in args:
        kind = type(each)
        if kind not in _PLAIN and kind is not only:
            if only is not None or kind in _MANY:
                break
            only = kind
    else:
        if only is not None and not kwargs and overrides(only):
            return (only,)
    return order([type(each) for each in _flat(args, kwargs) if is_tensor_like(each) and overrides(type(each))])


def _flat(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    return [each for value in (*args, *kwargs.values()) for each in _one_level(value)]


def order(types: Sequence[type]) -> tuple[type, ...]:
    """The order in which PyTorch asks types: from left to right, each once, subclasses before superclasses."""
    asked: list[type] = []
    for each in types:
        if each in asked:
            continue
        position = next((index for index, other in enumerate(asked) if issubclass(each, other)), len(asked))
        asked.insert(position, each)
    return tuple(asked)


def break_graph(why: str) -> None:
    """Under torch.compile, leave what follows to Python, and say why."""
    if torch.compiler.is_compiling():
        torch._dynamo.graph_break(msg=why)


def _one_level(value: Any) -> tuple[Any, ...]:
    return tuple(value) if type(value) in (list, tuple) else (value,)


def _is_known(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex, numpy.generic)) or is_tensor_like(value)


def _binary(function: Callable[..., Any]) -> Method:
    def method(self: Any, other: Any) -> Any:
        return function(self, other) if _is_known(other) else NotImplemented

    return method


def _asked(function: Callable[..., Any]) -> Method:
    def method(self: Any, other: Any) -> Any:
        return ask(function, self, other) if _is_known(other) else NotImplemented

    return method


def _divided(self: Any, other: Any) -> Any:
    """What `/` with an object on the right is; the arrays of NumPy are left to NumPy, as a tensor leaves them."""
    if isinstance(other, numpy.ndarray):
        return torch.reciprocal(self) * other
    return ask(torch.Tensor.__rtruediv__, self, other) if _is_known(other) else NotImplemented


def _equal(self: Any, other: Any) -> Any:
    """What `==` is; a tensor compares with the arrays of NumPy, and differs from them as a whole."""
    if isinstance(other, numpy.ndarray):
        return torch.eq(self, torch.from_numpy(other))
    return torch.eq(self, other) if _is_known(other) else NotImplemented


def _unary(function: Callable[..., Any]) -> Method:
    def method(self: Any) -> Any:
        return ask(function, self)

    return method


class Operators:
    """The operators of tensors, each by the function that it is in PyTorch."""

    __array_priority__ = torch.Tensor.__array_priority__  # NumPy's numbers and arrays on the left leave it to us

    __add__, __radd__, __iadd__ = _binary(torch.add), _asked(torch.Tensor.__radd__), _asked(torch.Tensor.add_)
    __sub__, __rsub__, __isub__ = _binary(torch.sub), _asked(torch.Tensor.__rsub__), _asked(torch.Tensor.sub_)
    __mul__, __rmul__, __imul__ = _binary(torch.mul), _asked(torch.Tensor.__rmul__), _asked(torch.Tensor.mul_)
    __truediv__, __rtruediv__ = _binary(torch.div), _divided
    __itruediv__ = _asked(torch.Tensor.div_)
    __div__ = __truediv__
    __floordiv__, __rfloordiv__ = _binary(torch.floor_divide), _asked(torch.Tensor.__rfloordiv__)
    __ifloordiv__ = _asked(torch.Tensor.floor_divide_)
    __mod__, __rmod__, __imod__ = (
        _binary(torch.remainder),
        _asked(torch.Tensor.__rmod__),
        _asked(torch.Tensor.remainder_),
    )
    __pow__, __rpow__, __ipow__ = _binary(torch.pow), _asked(torch.Tensor.__rpow__), _asked(torch.Tensor.pow_)
    __matmul__, __rmatmul__ = _asked(torch.matmul), _asked(torch.Tensor.__rmatmul__)
    __and__, __rand__, __iand__ = (
        _binary(torch.bitwise_and),
        _asked(torch.Tensor.__rand__),
        _asked(torch.Tensor.bitwise_and_),
    )
    __or__, __ror__, __ior__ = (
        _binary(torch.bitwise_or),
        _asked(torch.Tensor.__ror__),
        _asked(torch.Tensor.bitwise_or_),
    )
    __xor__, __rxor__, __ixor__ = (
        _binary(torch.bitwise_xor),
        _asked(torch.Tensor.__rxor__),
        _asked(torch.Tensor.bitwise_xor_),
    )
    __lshift__, __rlshift__ = _binary(torch.bitwise_left_shift), _asked(torch.Tensor.__rlshift__)
    __rshift__, __rrshift__ = _binary(torch.bitwise_right_shift), _asked(torch.Tensor.__rrshift__)
    __lt__, __le__ = _binary(torch.lt), _binary(torch.le)
    __gt__, __ge__ = _binary(torch.gt), _binary(torch.ge)
    __eq__, __ne__ = _equal, _binary(torch.ne)
    __hash__ = object.__hash__
    __neg__, __pos__ = _unary(torch.neg), _unary(torch.positive)
    __abs__, __invert__ = _unary(torch.abs), _unary(torch.bitwise_not)
    __bool__, __float__ = _unary(torch.Tensor.__bool__), _unary(torch.Tensor.__float__)
    __int__, __index__ = _unary(torch.Tensor.__int__), _unary(torch.Tensor.__index__)
    __complex__, __len__ = _unary(torch.Tensor.__complex__), _unary(torch.Tensor.__len__)

    def __getitem__(self, index: Any) -> Any:
        return ask(torch.Tensor.__getitem__, self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        ask(torch.Tensor.__setitem__, self, index, value)

    def __reversed__(self) -> Any:
        return ask(torch.Tensor.__reversed__, self)

    def __contains__(self, element: Any) -> bool:
        return bool(ask(torch.Tensor.__contains__, self, element))

    def __iter__(self) -> Iterator[Any]:
        return iter(ask(torch.unbind, self))

    def __array__(self, dtype: Any = None) -> Any:
        return ask(torch.Tensor.__array__, self, dtype)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return ask(torch.Tensor.__array_wrap__, self, array)
