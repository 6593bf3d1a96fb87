"""Functions that torch gets wrong or refuses under transforms, above all norms, composed of other functions.

Torch's formulas for a norm treat the saved mean and deviation as constants. So the first derivative is right, but the
second in forward mode and the third in reverse mode are silently wrong, in torch up to 2.13;
`tests/tracing/decompositions/test_composed.py` tests whether they still are. The compositions are the decompositions
that kernels are derived from, which save nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from opwright.errors import NoKernel
from opwright.tracing.decompositions import norms
from opwright.tracing.torch_hooks import functorch

Tensor = torch.Tensor


class Composed(TorchFunctionMode):
    """While active, calls the compositions of this module instead of torch's own functions.

    Args:
        levels: How many levels of `torch.func` a derivation opens within. Those beyond them are of the reference.
    """

    def __init__(self, levels: int = 0) -> None:
        super().__init__()
        self._levels = functorch.depth() + levels

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the composition, if there is one."""
        if (drop := _DROPS.get(func)) is not None:
            return drop(*args, **(kwargs or {}), by_rows=functorch.depth() > self._levels)
        return _COMPOSED.get(func, func)(*args, **(kwargs or {}))


class ComposedUnderTransforms(Composed):
    """The same where a reference calls `torch.func` itself; its other norms are torch's own."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the composition, if there is one and a transform is active."""
        if (own := _IN_TRACES.get(func)) is not None:
            return own(*args, **(kwargs or {}))
        if func in _QUANTILES:
            _check_quantiles(*args[1:], **(kwargs or {}))
        if func in _DECOMPOSED_WRONGLY or (func in _LOSES_OUT and (kwargs or {}).get("out") is not None):
            raise NoKernel(
                f"in a trace, torch computes {func.__name__} wrongly", hint="keep it outside of the operator"
            )
        if not functorch.are_active():
            return func(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs)


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """With a bias and more than two dimensions, torch's own asks a wrapped tensor for sizes that are known.

    Raises:
        NoKernel: If the bias has more than one dimension, and the input not two: torch's kernels add it in place, or to
            rows in one dimension, and what is traced does not.
    """
    if bias is not None and bias.dim() > 1 and input.dim() != 2:
        raise NoKernel("a bias of more than one dimension in a linear layer", hint="add it after the layer")
    if bias is None or input.dim() <= 2 or not functorch.are_active():
        return functional.linear(input, weight, bias)
    return torch.matmul(input, weight.mT) + bias


def _fill_diagonal(self: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Fill a view of the diagonal, where torch asks for strides; that of a tall matrix may begin again below."""
    is_cube = self.dim() > 1 and all(size == self.shape[0] for size in self.shape)
    if not is_cube and (self.dim() != 2 or (wrap and self.shape[0] > self.shape[1])):
        return self.fill_diagonal_(fill_value, wrap)
    diagonal = self
    while diagonal.dim() > 1:
        diagonal = diagonal.diagonal(0, 0, -1)
    diagonal.fill_(fill_value)
    return self


def _one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Torch's own checks neither dtype nor classes in a trace, so kernels do.

    Raises:
        NoKernel: If the classes are not of dtype int64.
    """
    if tensor.dtype is not torch.int64:
        raise NoKernel("classes of one_hot are not of dtype int64", hint="convert them by .long()")
    if num_classes != -1 and not functorch.are_active():
        are_classes = torch.all((tensor >= 0) & (tensor < num_classes))
        torch.ops.aten._assert_async.msg(are_classes, "a class is out of bounds")
    return functional.one_hot(tensor, num_classes)


def _check_quantiles(q: Any = None, *_: Any, **__: Any) -> None:
    """Torch's own reads the values, which a trace does not have, so kernels do."""
    if isinstance(q, Tensor) and not functorch.are_active():
        torch.ops.aten._assert_async.msg(torch.all((q >= 0) & (q <= 1)), "a quantile is out of bounds")


def _layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    shape = tuple(normalized_shape)
    _demand(shape == tuple(input.shape[input.dim() - len(shape) :]), f"normalized_shape {shape} of an input", input)
    _demand_parameters(input, shape, weight, bias)
    return norms.layer_norm(input, shape, weight, bias, eps)[0]


def _group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    n, channels, *positions = input.shape
    _demand(channels % num_groups == 0, f"{num_groups} groups of channels of an input", input)
    _demand_parameters(input, (channels,), weight, bias)
    return norms.group_norm(input, weight, bias, n, channels, math.prod(positions), num_groups, eps)[0]


def _batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    _demand_parameters(input, (input.shape[1],), weight, bias, running_mean, running_var)
    if not training:
        mean, variance = _as_constants(running_mean, running_var)
        return norms.batch_norm(input, weight, bias, mean, variance, False, momentum, eps)[0]
    axes = (0, *range(2, input.dim()))
    return _by_statistics(input, axes, running_mean, running_var, weight, bias, momentum, eps)


def _as_constants(running_mean: Tensor | None, running_var: Tensor | None) -> list[Tensor | None]:
    """Running statistics, of which torch knows no derivatives.

    Raises:
        RuntimeError: If one is asked for in reverse mode, in torch's words.
    """
    statistics = {"running_mean": running_mean, "running_var": running_var}
    for name, statistic in statistics.items():
        if statistic is not None and statistic.requires_grad:
            raise RuntimeError(
                f"The function 'native_batch_norm' is not differentiable with respect to argument '{name}'. This input "
                "cannot have requires_grad True."
            )
    with torch._C.DisableTorchFunction():
        return [None if statistic is None else statistic.detach() for statistic in statistics.values()]


def _instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    if not use_input_stats:
        return _batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    _demand_parameters(input, (input.shape[1],), weight, bias, running_mean, running_var)
    axes = tuple(range(2, input.dim()))
    return _by_statistics(input, axes, running_mean, running_var, weight, bias, momentum, eps)


def _by_statistics(
    input: Tensor,
    axes: tuple[int, ...],
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    momentum: float,
    eps: float,
) -> Tensor:
    """Normalize by the statistics of the batch, and update running statistics with the unbiased variance."""
    _as_constants(running_mean, running_var)  # refuses, as torch does
    sizes = [input.shape[axis] for axis in axes]
    if all(isinstance(size, int) and size == 1 for size in sizes):
        raise ValueError(f"a norm wants more than one value of each channel; sizes {tuple(input.shape)} have one")
    count = math.prod(sizes)
    mean, centred, squares = norms.moments(norms.wide(input), axes)
    with _without_gradients():
        for running, shown in ((running_mean, mean), (running_var, squares / (count - 1))):
            if running is not None:
                norms.move(running, _by_channel(shown), momentum)
    normalized = centred * torch.rsqrt(squares / count + eps)
    return norms.affine(normalized, weight, bias, [-1] + [1] * (input.dim() - 2)).to(input.dtype)


def _dropout(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    by_rows: bool,
) -> Tensor:
    """Under a transform, torch's own asks a wrapped tensor for the number of its elements, which it does not know.

    It draws row by row there, and else along memory.
    """
    if inplace or not training or not 0 < p < 1:
        return functional.dropout(input, p, training, inplace)
    order = torch.contiguous_format if by_rows else torch.preserve_format
    return input * torch.empty_like(input, memory_format=order).bernoulli_(1 - p).div_(1 - p)


@contextmanager
def _without_gradients() -> Iterator[None]:
    """As `torch.no_grad()`, but unseen by modes, which look for one in the user's function."""
    before = torch.is_grad_enabled()
    with torch._C.DisableTorchFunction():
        torch._C._set_grad_enabled(False)
    try:
        yield
    finally:
        with torch._C.DisableTorchFunction():
            torch._C._set_grad_enabled(before)


def _demand(condition: bool, what: str, x: Tensor) -> None:
    """Demand a condition of torch's own functions.

    Raises:
        RuntimeError: If the condition does not hold.
    """
    if not condition:
        raise RuntimeError(f"a norm was asked for {what} of sizes {tuple(x.shape)}")


def _demand_parameters(x: Tensor, shape: tuple[int, ...], *parameters: Tensor | None) -> None:
    for parameter in parameters:
        if parameter is not None:
            _demand(tuple(parameter.shape) == shape, f"sizes {shape}, with a parameter", parameter)
    _demand(norms.are_taken_together(x, *parameters), f"parameters of other dtypes than {x.dtype}, with an input", x)


def _by_channel(statistic: Tensor) -> Tensor:
    """The mean over instances, one for each channel."""
    return statistic.detach().reshape(statistic.shape[0], statistic.shape[1]).mean(0)


def _in_torchs_order(norm: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The same as `torch.batch_norm` and `torch.instance_norm` have it: weight and bias before the statistics."""

    def ordered(
        input: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        *rest: Any,
        cudnn_enabled: bool = True,
        **named: Any,
    ) -> Tensor:
        return norm(input, running_mean, running_var, weight, bias, *rest[:3], **named)

    return ordered


_COMPOSED: Mapping[Callable[..., Any], Callable[..., Tensor]] = {
    functional.layer_norm: _layer_norm,
    torch.layer_norm: _layer_norm,
    functional.group_norm: _group_norm,
    torch.group_norm: _group_norm,
    functional.batch_norm: _batch_norm,
    torch.batch_norm: _in_torchs_order(_batch_norm),
    functional.instance_norm: _instance_norm,
    torch.instance_norm: _in_torchs_order(_instance_norm),
}
_IN_TRACES: Mapping[Callable[..., Any], Callable[..., Tensor]] = {
    functional.linear: _linear,
    functional.one_hot: _one_hot,
    torch.Tensor.fill_diagonal_: _fill_diagonal,
}
_DROPS: Mapping[Callable[..., Any], Callable[..., Tensor]] = {
    functional.dropout: _dropout,
    torch.dropout: lambda input, p, train, by_rows: _dropout(input, p, train, by_rows=by_rows),
}
# It counts places behind the last class. Where gradients are recorded, this is before our own decompositions are asked.
_DECOMPOSED_WRONGLY = frozenset({functional.multilabel_margin_loss, torch._C._nn.multilabel_margin_loss})
_QUANTILES = frozenset({torch.quantile, torch.nanquantile, torch.Tensor.quantile, torch.Tensor.nanquantile})
_LOSES_OUT = frozenset({torch.linalg.matrix_rank})  # under a mode it returns a new tensor, and leaves `out=` as it was
