"""What PyTorch's own kernels demand of their arguments: decompositions into arithmetic would broadcast and promote."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from opwright.errors import NoKernel
from opwright.tracing.decompositions.norms import are_taken_together

aten = torch.ops.aten
Tensor = torch.Tensor

_ABOUT_DTYPES = re.compile(
    r"not (implemented|supported) for|dtype|scalar type|data type|bool(ean)? tensor|cast to|Expected both"
    r"|does not support|support complex|alpha |converted to type|negative integer powers"
)

_FEW = 6  # dimensions of the tensors that torch is asked with, so that they are small

# Only operations that look at all shapes before they read may be asked: element-wise ones, reductions, and these.
_ASKED_BY_TAG = {torch.Tag.pointwise, *([torch.Tag.reduction] if hasattr(torch.Tag, "reduction") else [])}
_ASKED: frozenset[OpOverload] = frozenset(
    {
        *(aten._softmax.default, aten._log_softmax.default, aten.glu.default, aten.hardswish.default),
        *(aten._softmax_backward_data.default, aten._log_softmax_backward_data.default, aten.nansum.default),
        *(aten.mm.default, aten.bmm.default, aten.mv.default, aten.dot.default, aten.addmm.default),
        *(aten.addmv.default, aten.baddbmm.default, aten.addbmm.default, aten.binary_cross_entropy.default),
        *(aten.soft_margin_loss.default, aten.log_sigmoid_forward.default, aten.smooth_l1_loss.default),
        *(aten.huber_loss.default, aten.mse_loss.default, aten.multi_margin_loss.default, aten.ldexp.Tensor),
        *(aten.multilabel_margin_loss_forward.default, aten.max_unpool2d.default, aten.max_unpool3d.default),
        *(aten.linspace.Tensor_Tensor, aten.linspace.Tensor_Scalar, aten.linspace.Scalar_Tensor),
        *(aten.logspace.Tensor_Tensor, aten.logspace.Tensor_Scalar, aten.logspace.Scalar_Tensor),
        *(
            aten.complex.default,
            aten.polar.default,
            aten.heaviside.default,
            aten.frac.default,
            aten.mvlgamma.default,
            aten.trace.default,
            aten.linalg_vector_norm.default,
        ),
        *(aten.sort.default, aten.sort.stable, aten.mode.default),
        *(aten.median.default, aten.median.dim, aten.nanmedian.default, aten.nanmedian.dim, aten.logcumsumexp.default),
        *(aten.cumsum.default, aten.cumprod.default, aten.cummax.default, aten.cummin.default),
    }
)


def is_asked(func: OpOverload) -> bool:
    """Whether torch's kernel of an operation is asked for the dtypes that it takes."""
    return func in _ASKED or not _ASKED_BY_TAG.isdisjoint(func.tags)


def demand(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Demand of the arguments of an operation what torch's kernel demands.

    Raises:
        NoKernel: If torch refuses them, so that the function as written serves the call and raises torch's own error.
        Exception: Torch's own error.
    """
    if is_asked(func):
        refusal = _answer(func, *_sorted(args, kwargs)).refusal
        _demand(not refusal, f"PyTorch refuses the dtypes: {refusal}")
    further = DEMANDS.get(func)
    if further is not None:
        further(*args, **kwargs)


def demand_dtypes(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
    """Demand that a result computed for an operation has the dtype of that of torch's kernel.

    Where its arguments have several dtypes, torch's decompositions and fake tensors promote some that its kernels do
    not.

    Raises:
        NoKernel: If it has not.
    """
    if not is_asked(func) or len(_dtypes((args, kwargs))) < 2:
        return
    expected, found = _answer(func, *_sorted(args, kwargs)).dtypes, _dtypes(result)
    _demand(
        expected in ((), found),
        f"{func.name()} of such dtypes is {_listed(expected)}, and kernels give {_listed(found)}",
    )


def _dtypes(values: Any) -> tuple[torch.dtype, ...]:
    return tuple(dict.fromkeys(leaf.dtype for leaf in tree_leaves(values) if isinstance(leaf, Tensor)))


def _listed(dtypes: Sequence[torch.dtype]) -> str:
    return ", ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)


def _demand(condition: Any, fact: str) -> None:
    if not condition:
        raise NoKernel(fact, hint="call it as PyTorch documents it")


@dataclass(frozen=True, slots=True)
class _Sort:
    """All of a tensor that decides whether its dtype is refused, and about that of the result."""

    dtype: torch.dtype
    rank: int


@dataclass(frozen=True, slots=True)
class _Plain:
    """What is not a tensor, with its type: 1, 1.0 and True are equal, and torch promotes them differently."""

    type: type
    value: Any


_SYMBOLS = {torch.SymInt: 1, torch.SymFloat: 1.0, torch.SymBool: True}


def _sort(leaf: Any) -> _Sort | _Plain:
    if isinstance(leaf, Tensor):
        return _Sort(leaf.dtype, leaf.dim())
    value = _SYMBOLS.get(type(leaf), leaf)
    return _Plain(type(value), value)


def _sorted(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[_Sort | _Plain, ...], Any]:
    leaves, tree = tree_flatten((args, kwargs))
    return tuple(map(_sort, leaves)), tree


@dataclass(frozen=True, slots=True)
class _Answer:
    """What torch says of dtypes: why it refuses them, or those of the results; neither if it says something else."""

    refusal: str = ""
    dtypes: tuple[torch.dtype, ...] = ()


@cache
def _answer(func: OpOverload, sorts: tuple[_Sort | _Plain, ...], tree: Any) -> _Answer:
    """Ask torch with small tensors."""
    with _disable_current_modes(), torch.no_grad():
        leaves = [_example(sort) if isinstance(sort, _Sort) else sort.value for sort in sorts]
        args, kwargs = tree_unflatten(leaves, tree)
        try:
            return _Answer(dtypes=_dtypes(func(*args, **kwargs)))
        except Exception as error:
            message = str(error).partition("\n")[0]
            return _Answer(message if _ABOUT_DTYPES.search(message) else "")


def _example(sort: _Sort) -> Tensor:
    return torch.zeros([2 if sort.rank <= _FEW else 1] * sort.rank, dtype=sort.dtype)


def _as_torch(func: OpOverload) -> Callable[..., None]:
    """Torch's own function for shapes, whose result is not needed."""

    def shapes(*args: Any, **kwargs: Any) -> None:
        func(*args, **kwargs)

    return shapes


def _addmm(added: Tensor, left: Tensor, right: Tensor, **_: Any) -> None:
    aten.mm.default(left, right)
    added.expand([left.shape[0], right.shape[1]])


def _addmv(added: Tensor, left: Tensor, right: Tensor, **_: Any) -> None:
    aten.mv.default(left, right)
    added.expand([left.shape[0]])


def _addbmm(added: Tensor, left: Tensor, right: Tensor, **_: Any) -> None:
    aten.bmm.default(left, right)
    added.expand([left.shape[1], right.shape[2]])


def _baddbmm(added: Tensor, left: Tensor, right: Tensor, **_: Any) -> None:
    aten.bmm.default(left, right)
    added.expand([left.shape[0], left.shape[1], right.shape[2]])


def _layer_norm(
    x: Tensor, normalized_shape: Sequence[Any], weight: Tensor | None, bias: Tensor | None, eps: float
) -> None:
    shape = list(normalized_shape)
    _demand(shape and list(x.shape[x.dim() - len(shape) :]) == shape, "a layer norm of other sizes than its input's")
    for parameter in (weight, bias):
        _demand(parameter is None or list(parameter.shape) == shape, "a layer norm with parameters of other sizes")
    _demand_dtypes(x, weight, bias)


def _group_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, n: Any, channels: Any, *_: Any) -> None:
    for parameter in (weight, bias):
        _demand(parameter is None or list(parameter.shape) == [channels], "a group norm with parameters of other sizes")
    _demand_dtypes(x, weight, bias)


def _batch_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor | None, variance: Tensor | None, *_: Any
) -> None:
    _demand_dtypes(x, weight, bias, mean, variance)


def _demand_dtypes(x: Tensor, *parameters: Tensor | None) -> None:
    _demand(x.dtype.is_floating_point, "a norm of numbers that are not of floating point")
    _demand(are_taken_together(x, *parameters), "a norm of mixed dtypes")


def _same_shape(what: str) -> Callable[..., None]:
    def shapes(first: Tensor, second: Tensor, *_: Any, **__: Any) -> None:
        _demand(list(first.shape) == list(second.shape), f"{what} of different sizes")

    return shapes


def _cross(x: Tensor, other: Tensor, *_: Any, **__: Any) -> None:
    _demand(x.dtype is other.dtype is not torch.bool, "a cross product of mixed dtypes or of bools")


def _indexed(x: Tensor, dim: int, index: Tensor, *_: Any, **__: Any) -> None:
    _demand(index.dtype in (torch.int32, torch.int64), "an index that is no int32 or int64")


def _added_at(x: Tensor, dim: int, index: Tensor, source: Tensor, **_: Any) -> None:
    _indexed(x, dim, index)
    _demand(index.dim() <= 1 and x.dim() == source.dim(), "indices or values of other dimensions")
    count = index.shape[0] if index.dim() else 1
    sizes = [*x.shape[: dim % x.dim()], count, *x.shape[dim % x.dim() + 1 :]] if x.dim() else []
    _demand(list(source.shape) == sizes and (sizes or count == 1), "values of other sizes than where they are added")


def _addr(x: Tensor, left: Tensor, right: Tensor, **_: Any) -> None:
    _demand(x.dtype is left.dtype is right.dtype, "an outer product of mixed dtypes")


def _dropout_backward(gradient: Tensor, mask: Tensor, *_: Any) -> None:
    _demand(mask.dtype is torch.bool, "a mask that is not of truth values")


def _normal(mean: Tensor, deviation: Tensor, *_: Any, **__: Any) -> None:
    _demand(mean.dtype is deviation.dtype, "random numbers with mean and deviation of two dtypes")


def _prelu(x: Tensor, weight: Tensor) -> None:
    _demand(x.dtype.is_floating_point, "the slopes of integers")


def _not_empty(x: Tensor) -> None:
    _demand(x.numel() != 0, "the extreme of no elements")


def _range(*_: Any, dtype: torch.dtype | None = None, **__: Any) -> None:
    _demand(dtype is None or not (dtype.is_complex or dtype is torch.bool), "a range of complex numbers or of bools")


def _spaced(*_: Any, dtype: torch.dtype | None = None, **__: Any) -> None:
    _demand(dtype is not torch.bool, "bools at distances")


def _nll_loss(x: Tensor, target: Tensor, weight: Tensor | None = None, *_: Any) -> None:
    _demand(target.dtype in (torch.int64, torch.uint8), "classes that are no int64 or uint8")
    _demand(x.dtype.is_floating_point, "losses of numbers that are not of floating point")
    _demand(list(target.shape) == list(x.shape[:-1]), "classes of other sizes than the rows")
    _demand(weight is None or weight.dtype is x.dtype, "losses and their weights of two dtypes")


def _slice_of(select: Callable[..., Tensor]) -> Callable[..., None]:
    """What replaces a slice has exactly its shape."""

    def shapes(x: Tensor, source: Tensor, *where: Any, **named: Any) -> None:
        _demand(list(select(x, *where, **named).shape) == list(source.shape), "a source of other sizes than the slice")

    return shapes


DEMANDS: Mapping[OpOverload, Callable[..., None]] = {
    aten.mm.default: _as_torch(aten.mm.default),
    aten.bmm.default: _as_torch(aten.bmm.default),
    aten.mv.default: _as_torch(aten.mv.default),
    aten.dot.default: _as_torch(aten.dot.default),
    aten.addmm.default: _addmm,
    aten.addmv.default: _addmv,
    aten.addbmm.default: _addbmm,
    aten.baddbmm.default: _baddbmm,
    aten.native_layer_norm.default: _layer_norm,
    aten.native_group_norm.default: _group_norm,
    aten.native_batch_norm.default: _batch_norm,
    aten._softmax_backward_data.default: _same_shape("gradients and results of a softmax"),
    aten._log_softmax_backward_data.default: _same_shape("gradients and results of a softmax"),
    aten.linalg_cross.default: _cross,
    aten.index_add.default: _added_at,
    **dict.fromkeys((aten.index_copy.default, aten.index_fill.int_Scalar, aten.index_fill.int_Tensor), _indexed),
    **dict.fromkeys((aten.min.default, aten.max.default), _not_empty),
    aten.nll_loss_forward.default: _nll_loss,
    **dict.fromkeys((aten.arange.default, aten.arange.start, aten.arange.start_step), _range),
    **dict.fromkeys((aten.linspace.default, aten.logspace.default), _spaced),
    aten.addr.default: _addr,
    aten.native_dropout_backward.default: _dropout_backward,
    aten.normal.Tensor_Tensor: _normal,
    aten._prelu_kernel.default: _prelu,
    aten.diagonal_scatter.default: _slice_of(torch.diagonal),
    aten.select_scatter.default: _slice_of(torch.select),
    aten.take.default: lambda x, index: _demand(index.dtype is torch.int64, "take() wants indices of dtype int64"),
    aten.mvlgamma.default: lambda x, p: _demand(p >= 1, f"mvlgamma() of order {p}"),
}
"""What torch's kernels demand: of shapes, where decompositions would broadcast; of dtypes, where torch is not asked."""
