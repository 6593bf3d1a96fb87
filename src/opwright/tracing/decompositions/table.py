"""Our own decompositions, into kernels and plain library calls; they come before torch's."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._ops import OpOverload
from torch._prims_common import compute_elementwise_output_logical_to_physical_perm
from torch.fx.experimental.symbolic_shapes import statically_known_true

from opwright.errors import NoKernel
from opwright.tracing.decompositions.batches import BATCHES
from opwright.tracing.decompositions.demands import demand
from opwright.tracing.decompositions.losses import LOSSES
from opwright.tracing.decompositions.normalizations import NORMALIZATIONS
from opwright.tracing.decompositions.norms import NORMS
from opwright.tracing.decompositions.numbers import NUMBER_DECOMPOSITIONS
from opwright.tracing.decompositions.outer_products import OUTER_PRODUCTS
from opwright.tracing.decompositions.positions import POSITIONS
from opwright.tracing.decompositions.ranges import RANGE_DECOMPOSITIONS
from opwright.tracing.torch_hooks.fake_mode import core_decompositions

aten = torch.ops.aten

_MOST_TURNS = 4  # more are seldom, and as many kernels


def _add_product(product: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """beta·added + alpha·product(left, right): the sum can be fused with what follows.

    With factors and in half types, as in the Newton-Schulz iteration of Muon, the product is of float32, because eager
    rounds the sum alone: where both nearly cancel, a rounding more is more than eager's own error.
    """

    def rule(
        added: torch.Tensor, left: torch.Tensor, right: torch.Tensor, *, beta: float = 1, alpha: float = 1
    ) -> torch.Tensor:
        half = left.dtype if left.dtype in (torch.bfloat16, torch.float16) else None
        if (
            half
            and added.dtype is half
            and not all(type(factor) in (int, float) and factor == 1 for factor in (beta, alpha))
        ):
            return rule(added.float(), left.float(), right.float(), beta=beta, alpha=alpha).to(half)
        result = product(left, right)
        result = result if alpha == 1 else result * alpha
        if beta == 0:
            return result
        return result + (added if beta == 1 else added * beta)

    return rule


def _slice_backward(gradient: torch.Tensor, input_sizes: list[int], dim: int, start: int, end: int, step: int) -> Any:
    """The gradient of a slice with zeros around it, as a `cat`, whose pieces can be fused with what follows."""
    size = input_sizes[dim]
    if step != 1:
        return _in_turns(gradient, input_sizes, dim % len(input_sizes), start, step)
    begin = max(start + size, 0) if start < 0 else min(start, size)
    rest = size - begin - gradient.shape[dim]
    around = [_zeros(gradient, dim, begin), gradient, _zeros(gradient, dim, rest)]
    pieces = [piece for piece in around if piece.shape[dim] != 0] or [gradient]
    return torch.cat(pieces, dim) if len(pieces) > 1 else pieces[0]


def _in_turns(gradient: torch.Tensor, input_sizes: list[int], dim: int, start: int, step: int) -> Any:
    """The gradient of `x[start::step]` beside zeros, as a `stack`, where the size is known to be a multiple of `step`.

    No guard is set for this: other sizes would need kernels of their own.
    """
    size = input_sizes[dim]
    if not (type(start) is int and 0 <= start < step <= _MOST_TURNS and _is_multiple(size, step)):
        return NotImplemented
    if not statically_known_true(gradient.shape[dim] == size // step):  # the slice ends earlier
        return NotImplemented
    zeros = torch.zeros_like(gradient)
    turns = [gradient if turn == start else zeros for turn in range(step)]
    return torch.stack(turns, dim + 1).reshape(input_sizes)  # it may lie as the gradient does, by channels


def _is_multiple(size: Any, of: int) -> bool:
    """Whether guards say so: slices that begin at 0 and later are as long, or what is made of them is as long again."""
    rounded_up = (size + of - 1) // of
    return statically_known_true(rounded_up == size // of) or statically_known_true(size // of * of == size)


def _zeros(like: torch.Tensor, dim: int, size: int) -> torch.Tensor:
    shape = list(like.shape)
    shape[dim] = size
    return like.new_zeros(shape)


def _select_backward(gradient: torch.Tensor, input_sizes: list[int], dim: int, index: int) -> Any:
    dim = dim % len(input_sizes)
    return _slice_backward(gradient.unsqueeze(dim), input_sizes, dim, index, index + 1, 1)


def _scaled(operation: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """One tensor ± alpha·another, where alpha is a number that changes from call to call."""

    def rule(self: torch.Tensor, other: Any, *, alpha: Any = 1) -> Any:
        if not isinstance(alpha, (torch.SymFloat, torch.SymInt)):
            return NotImplemented
        if isinstance(other, torch.Tensor) and other.dtype is torch.bool:
            return NotImplemented  # times a number, it would be an integer
        return operation(self, other * alpha)

    return rule


def _soft_margin_loss_backward(gradient: torch.Tensor, x: torch.Tensor, target: torch.Tensor, reduction: int) -> Any:
    """-y·σ(-y·x), exact where torch's y·(σ(y·x) - 1) cancels; `reduction` 1 is a mean."""
    slope = -target * gradient * torch.sigmoid(-target * x)
    return slope / x.numel() if reduction == 1 else slope


def _log_sigmoid(x: torch.Tensor) -> torch.Tensor:
    """What torch's decompositions of losses call; its own table has `log_sigmoid_forward`, which has two results."""
    result: torch.Tensor = aten.log_sigmoid_forward.default(x)[0]
    return result


def _zeros_for_tangent(tangent: torch.Tensor, primal: torch.Tensor, *, self_num_batch_dims: int = 0) -> torch.Tensor:
    """Zeros laid out as a primal, for each entry of a tangent's batch; torch's own need sizes that are known."""
    order, _ = compute_elementwise_output_logical_to_physical_perm(primal)
    batch = tangent.shape[:self_num_batch_dims]
    zeros = tangent.new_zeros((*batch, *[primal.shape[dimension] for dimension in order]))
    places = [len(batch) + order.index(dimension) for dimension in range(primal.dim())]
    zeros = zeros.permute([*range(len(batch)), *places])
    if zeros.stride()[len(batch) :] != primal.stride():
        raise NoKernel("it differentiates forward through a tensor with gaps in memory", hint="call .contiguous()")
    return zeros


def _contiguous(x: torch.Tensor, *, memory_format: torch.memory_format = torch.contiguous_format) -> torch.Tensor:
    """A copy: it is called of what is not contiguous. In a kernel that may be, and the operation would share memory."""
    return x.clone(memory_format=memory_format)


def _to_copy(x: Any, *, dtype: torch.dtype | None = None, **_: Any) -> Any:
    """A size as a tensor: `vmap` converts the numbers beside tensors that have no dimension but its own."""
    return NotImplemented if isinstance(x, torch.Tensor) else torch.full((), x, dtype=dtype)


def _whole(*_: Any, **__: Any) -> Any:
    """An operation that is best left to the library as a whole."""
    return NotImplemented


def _gather(x: torch.Tensor, dim: int, index: torch.Tensor, *, sparse_grad: bool = False) -> Any:
    """A library operation; the guard whether it takes all rows lets kernels over rows fuse it."""
    for d, (size, whole) in enumerate(zip(index.shape, x.shape, strict=False)):
        if d != dim % x.dim():
            bool(size == whole)
    return NotImplemented


def _cat(tensors: list[torch.Tensor], dim: int = 0) -> Any:
    """A library operation; the guard that parts of one size are equal lets one kernel write them, as two halves do."""
    sizes: list[Any] = [x.shape[dim] for x in tensors if -x.dim() <= dim < x.dim()]
    for one, other in itertools.pairwise(size.node for size in sizes if isinstance(size, torch.SymInt)):
        if one.expr.free_symbols == other.expr.free_symbols and one.hint == other.hint is not None:
            one.eq(other).guard_bool(__file__, 0)
    return NotImplemented


def _log_sum_exp(x: torch.Tensor, dim: list[int], keepdim: bool = False) -> Any:
    """With an empty list of dimensions, torch raises or reduces all, depending on its version."""
    if not dim:
        raise NoKernel("logsumexp is given no dimension", hint="name the dimensions in dim=")
    return core_decompositions()[aten.logsumexp.default](x, dim, keepdim)


def _log_add_exp(x: torch.Tensor, y: torch.Tensor) -> Any:
    """Left to the library for complex numbers, where torch's decomposition multiplies infinities by zeros."""
    if x.is_complex() or y.is_complex():
        return NotImplemented
    return core_decompositions()[aten.logaddexp.default](x, y)


def _add_combined(func: OpOverload, combine: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Torch's decomposition; but complex sums by parts, as the sum of two tensors multiplies one of them by 1 + 0j."""

    def rule(x: torch.Tensor, left: torch.Tensor, right: torch.Tensor, *, value: Any = 1) -> torch.Tensor:
        if not all(tensor.is_complex() for tensor in (x, left, right)):
            return core_decompositions()[func](x, left, right, value=value)  # type: ignore[no-any-return]
        factor = torch.full((), value, dtype=torch.promote_types(left.dtype, right.dtype))
        added = combine(factor * left, right)
        return torch.complex(x.real + added.real, x.imag + added.imag)

    return rule


def _sgn(x: torch.Tensor) -> Any:
    """Complex signs have kernels of their own, see lowering/pointwise/complex.py."""
    return NotImplemented if x.is_complex() else torch.sign(x)


def _power(x: torch.Tensor, exponent: Any) -> Any:
    """Powers that eager computes otherwise than torch's own decomposition.

    Truth values to the power of one are truth values. For roots of float16 on a CPU it computes general powers, which
    are +∞ and 0 at −∞ and −0, unlike a root.
    """
    if x.dtype is torch.bool and type(exponent) is bool:
        return torch.clone(x) if exponent else torch.ones_like(x)
    root = {0.5: torch.sqrt, -0.5: torch.rsqrt}.get(exponent) if type(exponent) is float else None
    if root is None or x.dtype is not torch.float16 or x.device.type != "cpu":
        return NotImplemented
    return root(torch.where(torch.logical_or(x == 0, x == -math.inf), torch.abs(x), x))


def _power_of_integer(base: Any, exponent: torch.Tensor) -> Any:
    """The operation as a whole takes a number, which torch's stable C interface does not pass."""
    dtype = torch.result_type(base, exponent)
    is_whole = type(base) is int and not (dtype.is_floating_point or dtype.is_complex or dtype is torch.bool)
    if not is_whole or not torch.iinfo(dtype).min <= base <= torch.iinfo(dtype).max:
        return NotImplemented
    return torch.pow(torch.full_like(exponent, base, dtype=dtype), exponent.to(dtype))


def _select_scatter(x: torch.Tensor, source: torch.Tensor, dim: int, index: int) -> Any:
    """What is written takes the dtype of where it is written."""
    return core_decompositions()[aten.select_scatter.default](x, source.to(x.dtype), dim, index)


def _index_add(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, *, alpha: Any = 1) -> Any:
    """Torch's decomposition, with its kernel's refusal of negative indices.

    The operation as a whole has a factor, which torch's stable C interface does not pass.
    """
    index = index if index.dim() else index.unsqueeze(0)
    aten._assert_async.msg(torch.all(index >= 0), "an index is negative")
    return core_decompositions()[aten.index_add.default](x, dim, index, source, alpha=alpha)


# Torch decomposes the first without looking at its pivots, the second with negative indices counted from the end, and
# the others into lookups by computed indices, whose gradients add up element by element: 2 to 24 times the time of the
# one operation that eager calls (benchmarks/layers.py).
_WHOLE: tuple[OpOverload, ...] = (
    aten.lu_unpack.default,
    aten.index_copy.default,
    aten.upsample_linear1d.default,
    *(
        getattr(aten, f"{name}{dimensions}d{suffix}").default
        for dimensions in (1, 2, 3)
        for name in ("reflection_pad", "replication_pad")
        for suffix in ("", "_backward")
    ),
)

OWN_DECOMPOSITIONS: Mapping[OpOverload, Callable[..., Any]] = {
    aten.contiguous.default: _contiguous,
    aten._to_copy.default: _to_copy,
    aten.add.Tensor: _scaled(aten.add.Tensor),
    aten.sub.Tensor: _scaled(aten.sub.Tensor),
    aten.addmm.default: _add_product(aten.mm.default),
    aten.addmv.default: _add_product(aten.mv.default),
    aten.addcdiv.default: _add_combined(aten.addcdiv.default, torch.div),
    aten.addcmul.default: _add_combined(aten.addcmul.default, torch.mul),
    aten.addbmm.default: _add_product(lambda left, right: torch.bmm(left, right).sum(0)),
    aten.baddbmm.default: _add_product(aten.bmm.default),
    aten._new_zeros_with_same_feature_meta.default: _zeros_for_tangent,
    aten.embedding_dense_backward.default: _whole,
    aten.gather.default: _gather,
    aten.cat.default: _cat,
    aten.index_add.default: _index_add,
    aten.log_sigmoid.default: _log_sigmoid,
    aten.logaddexp.default: _log_add_exp,
    aten.logsumexp.default: _log_sum_exp,
    aten.pow.Scalar: _power_of_integer,
    aten.pow.Tensor_Scalar: _power,
    aten.sgn.default: _sgn,
    aten.slice_backward.default: _slice_backward,
    aten.select_backward.default: _select_backward,
    aten.select_scatter.default: _select_scatter,
    **LOSSES,
    **NORMALIZATIONS,
    **NORMS,
    **POSITIONS,
    aten.soft_margin_loss_backward.default: _soft_margin_loss_backward,
    **NUMBER_DECOMPOSITIONS,
    **RANGE_DECOMPOSITIONS,
    **OUTER_PRODUCTS,
    **BATCHES,
    **dict.fromkeys(_WHOLE, _whole),
}


def decomposition(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any] | None:
    """Ours or torch's for a call, after its arguments meet what torch's own kernel demands; None if there is none.

    There is none for what writes into `out=`: torch's convert results to dtypes that its kernels refuse.

    Raises:
        Exception: If they do not.
    """
    demand(func, args, kwargs)
    if any(argument.is_out for argument in func._schema.arguments):
        return None
    return OWN_DECOMPOSITIONS.get(func) or core_decompositions().get(func)
