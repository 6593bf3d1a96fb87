"""Results of operations on row-major fake tensors, where nothing about them is in doubt.

Torch decides about broadcasting, promotion, memory formats and views by symbolic sizes, which takes most of the time of
a trace. Here is what can be told by looking:

- Element-wise operations. All operands have one floating-point dtype, or any for sums and products, and are row-major,
  expanded or not, and one that is not expanded has a shape to which the others broadcast as they are written. The
  result has that shape and is row-major too: torch's TensorIterator orders dimensions by strides that are not 0.
- Products of matrices, which are row-major.
- Views of row-major tensors with as many elements, and copies of row-major tensors. If these are not as many as
  written, the dimensions that are merged or split are compared, which sets the guards.
- Permutations, and views that keep or are given their strides.
- Sums and extremes of floating-point tensors along dimensions, if the tensors are row-major: so is the result.
- Empty tensors, and conversions that change nothing.

All else is left to torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from math import prod
from typing import Any

import torch
from torch._ops import OpOverload
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, in_kernel_invocation_manager

from opwright.tracing.torch_hooks.layouts.groups_of_dimensions import groups_of_dimensions, hinted

aten = torch.ops.aten

_CPU = torch.device("cpu")

Size = Any  # an int, or the expression of a SymInt


def _overloads(names: str, *overloads: str) -> frozenset[OpOverload]:
    packets = [getattr(aten, name) for name in names.split()]
    return frozenset(getattr(packet, name) for packet in packets for name in overloads if hasattr(packet, name))


OF_ONE = """abs acos acosh asin asinh atan atanh ceil cos cosh erf exp expm1 floor log log10 log1p log2 neg reciprocal
    relu rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"""
OF_TWO = "add atan2 div maximum minimum mul sub"
COMPARING = "eq ge gt le lt ne"

_SAME_DTYPE = _overloads(OF_ONE, "default") | _overloads(OF_TWO, "Tensor", "Scalar", "default")
_TRUTHS = _overloads(COMPARING, "Tensor", "Scalar")
_CHOOSING = _overloads("where", "self", "ScalarSelf", "ScalarOther")
_ELEMENT_WISE = _SAME_DTYPE | _TRUTHS | _CHOOSING
_PROMOTING = _overloads("add mul", "Tensor", "Scalar")
_REDUCING = frozenset((aten.sum.dim_IntList, aten.amax.default, aten.amin.default))
_PRODUCTS = {aten.mm.default: 2, aten.bmm.default: 3}
_CONVERSIONS = frozenset((aten.to.dtype, aten.conj_physical.default))
VIEWS = frozenset((aten.view.default, aten._unsafe_view.default))


class Layout(Enum):
    """How a tensor lies in memory."""

    ROW_MAJOR = auto()
    EXPANDED = auto()  # from a row-major tensor with some sizes of 1
    OTHER = auto()


class RowMajor:
    """Gives the results of such operations within one fake-tensor mode."""

    def __init__(self, mode: FakeTensorMode) -> None:
        self._mode = mode
        self._strides: dict[tuple[Size, ...], tuple[Size, ...]] = {}  # of row-major tensors, by their shapes

        self._others: Mapping[OpOverload, Callable[..., FakeTensor | None]] = {
            aten.clone.default: self._copy,
            aten.alias.default: self._as_it_is,
            aten.as_strided.default: self._strided,
            aten.permute.default: self._permuted,
        }

    def result(self, func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> FakeTensor | None:
        """The result of an operation; None if torch must tell."""
        if func is aten.empty.memory_format:
            return self._empty(*args, **kwargs)
        if kwargs:
            return None
        if func in _CONVERSIONS:
            return args[0] if self._is_plain(args[0]) and _changes_nothing(*args) else None
        if func in VIEWS:
            return self._view(*args) if self._is_plain(args[0]) else None
        if func in _REDUCING:
            return self._reduced(*args) if self._is_plain(args[0]) else None
        if func in self._others:
            return self._others[func](*args) if self._is_plain(args[0]) else None
        if func in _PRODUCTS:
            return self._product(_PRODUCTS[func], *args) if all(map(self._is_plain, args)) else None
        return self._element_wise(func, args) if func in _ELEMENT_WISE else None

    def _element_wise(self, func: OpOverload, args: Sequence[Any]) -> FakeTensor | None:
        if not all(map(self._is_plain, args)):
            return None
        if func in _CHOOSING and (args[0].dtype is not torch.bool or not _has_sizes_of_arguments(args[0])):
            return None
        of_dtype = [each for each in (args[1:] if func in _CHOOSING else args) if isinstance(each, torch.Tensor)]
        if not of_dtype:
            return None
        dtype: torch.dtype = of_dtype[0].dtype
        if func in _PROMOTING:
            _, dtype = elementwise_dtypes(*args, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)
        elif not dtype.is_floating_point or any(each.dtype is not dtype for each in of_dtype):
            return None
        shape = self._broadcast([each for each in args if isinstance(each, torch.Tensor)])
        if shape is None:
            return None
        return self._made(shape, torch.bool if func in _TRUTHS else dtype)

    def _made(self, shape: Sequence[Any], dtype: torch.dtype) -> FakeTensor:
        return FakeTensor(self._mode, torch.empty(shape, dtype=dtype, device="meta"), _CPU)

    def _empty(self, size: Sequence[Any], *, dtype: torch.dtype | None = None, **others: Any) -> FakeTensor | None:
        others = {name: value for name, value in others.items() if value not in (None, False, _CPU, torch.strided)}
        if dtype is None or others or any(type(each) is int and each < 0 for each in size):
            return None
        return self._made(size, dtype)

    def _product(self, rank: int, left: FakeTensor, right: FakeTensor) -> FakeTensor | None:
        a, b, dtype = _spelled(left.shape), _spelled(right.shape), left.dtype
        if (
            not len(a) == len(b) == rank
            or right.dtype is not dtype
            or not (dtype.is_floating_point or dtype.is_complex)
        ):
            return None
        is_one = a[:-2] == b[:-2] and a[-1] == b[-2] and 0 not in (*a, *b)
        return self._made((*left.shape[:-1], right.shape[-1]), dtype) if is_one else None

    def _copy(self, tensor: FakeTensor) -> FakeTensor | None:
        is_row_major = self._layout(tensor, _spelled(tensor.shape)) is Layout.ROW_MAJOR
        return self._made(tensor.shape, tensor.dtype) if is_row_major else None

    def _reduced(
        self, tensor: FakeTensor, dims: Sequence[int] | None = None, keepdim: bool = False
    ) -> FakeTensor | None:
        rank, shape = tensor.dim(), _spelled(tensor.shape)
        if not dims or not tensor.dtype.is_floating_point or 0 in shape or not all(-rank <= d < rank for d in dims):
            return None
        gone = {dim % rank for dim in dims}
        if len(gone) < len(dims) or self._layout(tensor, shape) is not Layout.ROW_MAJOR:
            return None
        left = [1 if dim in gone else size for dim, size in enumerate(tensor.shape) if keepdim or dim not in gone]
        return self._made(left, tensor.dtype)

    def _broadcast(self, tensors: Sequence[torch.Tensor]) -> Sequence[Any] | None:
        """The shape of a row-major result of an element-wise operation on tensors."""
        shapes = [_spelled(tensor.shape) for tensor in tensors]
        layouts = [self._layout(tensor, shape) for tensor, shape in zip(tensors, shapes, strict=True)]
        whole = [place for place, layout in enumerate(layouts) if layout is Layout.ROW_MAJOR]
        if not whole or Layout.OTHER in layouts:
            return None
        widest = max(whole, key=lambda place: _extent(shapes[place]))
        if not all(_broadcasts(shape, shapes[widest]) for shape in shapes):
            return None
        if len(whole) < len(tensors) and 1 in shapes[widest]:  # whose stride other strides decide
            return None
        return tensors[widest].shape

    def _view(self, tensor: FakeTensor, shape: Sequence[Any]) -> FakeTensor | None:
        """A row-major tensor in another shape."""
        seen, sizes = _spelled(tensor.shape), list(shape)
        negative = [size for size in sizes if type(size) is int and size < 0]
        if 0 in seen or 0 in _spelled(sizes) or negative not in ([], [-1]):
            return None
        if self._layout(tensor, seen) is not Layout.ROW_MAJOR:
            return None
        if negative:
            place = next(place for place, size in enumerate(sizes) if type(size) is int and size == -1)
            sizes[place] = 1
            sizes[place] = tensor.numel() // prod(sizes)
        if prod(_spelled(sizes)) != prod(seen) and not _hold_as_many(tensor.shape, sizes):
            return None
        return self._strided(tensor, sizes, torch.empty(sizes, device="meta").stride())

    def _strided(
        self, tensor: FakeTensor, sizes: Sequence[Any], strides: Sequence[Any], offset: Any = None
    ) -> FakeTensor:
        """A tensor in the same memory."""
        with in_kernel_invocation_manager(self._mode):
            seen = aten.as_strided.default(tensor, sizes, strides, offset)
        return FakeTensor(self._mode, seen, _CPU)

    def _as_it_is(self, tensor: FakeTensor) -> FakeTensor:
        return self._strided(tensor, tensor.shape, tensor.stride())

    def _permuted(self, tensor: FakeTensor, order: Sequence[int]) -> FakeTensor | None:
        rank = tensor.dim()
        if sorted(dim % rank if -rank <= dim < rank else rank for dim in order) != [*range(rank)]:
            return None
        strides = tensor.stride()
        return self._strided(tensor, [tensor.shape[dim] for dim in order], [strides[dim] for dim in order])

    def _is_plain(self, argument: Any) -> bool:
        """Whether it is a number that changes no dtype, or a tensor of this mode without a known value."""
        if type(argument) is FakeTensor:
            known = argument.constant is not None or argument.real_tensor is not None
            return argument.fake_mode is self._mode and argument.fake_device == _CPU and not known
        return type(argument) in (float, int, bool, torch.SymInt, torch.SymFloat)

    def _layout(self, tensor: torch.Tensor, shape: tuple[Size, ...]) -> Layout:
        strides = _spelled(tensor.stride())
        if strides == self._row_major(tensor.shape, shape):
            return Layout.ROW_MAJOR
        unexpanded = [1 if stride == 0 else size for size, stride in zip(tensor.shape, strides, strict=True)]
        row_major = self._row_major(unexpanded, _spelled(unexpanded))
        is_expanded = all(stride in (0, wanted) for stride, wanted in zip(strides, row_major, strict=True))
        return Layout.EXPANDED if is_expanded else Layout.OTHER

    def _row_major(self, shape: Sequence[Any], spelled: tuple[Size, ...]) -> tuple[Size, ...]:
        """The strides of a row-major tensor."""
        if spelled not in self._strides:
            self._strides[spelled] = _spelled(torch.empty(shape, device="meta").stride())
        return self._strides[spelled]


def _hold_as_many(left: Sequence[Any], right: Sequence[Any]) -> bool:
    """Whether two shapes hold as many elements; where they differ as written, this sets guards that they do.

    `(n, 6)` and `(n // 2, 2, 6)` set the guard `n == n // 2 * 2`.
    """
    groups = groups_of_dimensions([*map(hinted, left)], [*map(hinted, right)])
    if groups is None:
        return False
    pairs = [(left[ours], right[theirs]) for ours, theirs in groups]
    return all(prod(_spelled(a)) == prod(_spelled(b)) or bool(prod(a) == prod(b)) for a, b in pairs)


def _changes_nothing(tensor: FakeTensor, dtype: torch.dtype | None = None, *others: Any) -> bool:
    return not others and (not tensor.dtype.is_complex if dtype is None else dtype is tensor.dtype)


def _has_sizes_of_arguments(tensor: FakeTensor) -> bool:
    """Whether its sizes are numbers or symbols; of others, such as `n // 2`, torch asks more where it chooses."""
    return all(type(size) is int or size.is_Symbol for size in _spelled(tensor.shape))


def _spelled(sizes: Sequence[Any]) -> tuple[Size, ...]:
    """Sizes as far as guards have settled them: equal ones are equal for every size that passes the guards."""
    return tuple(size.node.expr if isinstance(size, torch.SymInt) else size for size in sizes)


def _extent(shape: tuple[Size, ...]) -> tuple[int, int]:
    return len(shape), sum(size != 1 for size in shape)


def _broadcasts(shape: tuple[Size, ...], to: tuple[Size, ...]) -> bool:
    """Whether a shape broadcasts to another one, size by size as written."""
    aligned = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(size in (1, wanted) for size, wanted in aligned)
