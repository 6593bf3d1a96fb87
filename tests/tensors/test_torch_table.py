"""Entries of PyTorch's table of operations through a Like that runs densely: results and gradients are PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves, tree_map

from opwright.tensors import Like
from tests.opinfo.cases import operations, samples_of
from tests.suite.nights import mostly_at_night

NAMES = """
    abs acos acosh add addbmm addcdiv addcmul addmm addmv addr all amax amin aminmax angle any argmax argmin
    argsort argwhere as_strided asin asinh atan atan2 atanh atleast_1d baddbmm block_diag bmm broadcast_to
    bucketize cat cdist ceil cholesky chunk clamp clone column_stack complex copysign corrcoef cos cosh
    count_nonzero cov cross cummax cummin cumprod cumsum deg2rad diag diag_embed diagonal diff digamma dist
    div dot dsplit dstack einsum eq erf erfc erfinv exp exp2 expand expm1 fft.fft fft.ifft fft.rfft flatten
    flip fliplr flipud float_power floor floor_divide fmax fmin fmod frac frexp gather ge gradient gt
    heaviside histc hsplit hstack hypot i0 index_add index_copy index_fill index_select inner isclose isfinite
    isin isinf isnan kron kthvalue ldexp le lerp lgamma linalg.cond linalg.cross linalg.det linalg.eigh
    linalg.inv linalg.norm linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.svd linalg.vector_norm log
    log10 log1p log2 log_softmax logaddexp logcumsumexp logdet logical_and logical_not logit logsumexp lt
    masked_fill masked_scatter masked_select matmul matrix_exp max mean median meshgrid min mm mode movedim
    msort mul mv nan_to_num nanmean nansum narrow ne neg nn.functional.conv1d nn.functional.conv2d
    nn.functional.cross_entropy nn.functional.elu nn.functional.gelu nn.functional.huber_loss
    nn.functional.interpolate nn.functional.layer_norm nn.functional.leaky_relu nn.functional.linear
    nn.functional.mse_loss nn.functional.normalize nn.functional.pad nn.functional.relu nn.functional.silu
    nn.functional.softplus outer permute pow prod quantile rad2deg ravel reciprocal remainder renorm repeat
    reshape roll rot90 round rsqrt rsub scatter scatter_add searchsorted select sgn sigmoid sign sin sinc sinh
    softmax sort special.entr special.i1 special.ndtr split sqrt square squeeze stack std sub sum svd t take
    tan tanh tensordot tile topk trace transpose trapezoid tril triu trunc unbind unfold unique unsqueeze var
    vstack where xlogy zeros_like
""".split()  # noqa: SIM905
BY_DAY = """
    add cat cumsum einsum index_select linalg.solve matmul mean nn.functional.relu rsub softmax where
""".split()  # noqa: SIM905
SAMPLES = 6


class Dense(Like):
    """A type that holds a tensor, and is none."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def densify(self) -> torch.Tensor:
        return self.tensor


Dense.fallback("densify")


def wrapped(value: Any) -> Any:
    return tree_map(lambda leaf: Dense(leaf) if isinstance(leaf, torch.Tensor) else leaf, value)


def called(info: Any, sample: Any, *, through: bool) -> tuple[list[Any], list[Any]]:
    """The results of a sample, and the gradients of its tensors."""
    call = sample.with_tensors([tensor.detach().requires_grad_(tensor.requires_grad) for tensor in sample.tensors()])
    args, kwargs = (wrapped(call.args), wrapped(call.kwargs)) if through else (call.args, call.kwargs)
    torch.manual_seed(0)
    results = [each for each in tree_leaves(info.op(*args, **kwargs)) if isinstance(each, torch.Tensor)]
    leaves = [tensor for tensor in call.tensors() if tensor.requires_grad]
    graded = [each for each in results if each.requires_grad]
    if not leaves or not graded:
        return results, []
    return results, list(torch.autograd.grad([each.abs().sum() for each in graded], leaves, allow_unused=True))


def entries(name: str) -> list[Any]:
    return [info for key, info in operations().items() if key == name or (info.name == name and info.variant_test_name)]


@pytest.mark.parametrize("name", mostly_at_night(NAMES, BY_DAY))
@pytest.mark.filterwarnings("ignore")
def test_results_and_gradients_are_those_of_torch(name: str) -> None:
    infos = entries(name)
    assert infos, name
    tried = 0
    for info in infos:
        for sample in samples_of(info, torch.float64, SAMPLES):
            if not sample.tensors():
                continue
            right = called(info, sample, through=False)
            found = called(info, sample, through=True)
            for one, other in zip(found, right, strict=True):
                assert len(one) == len(other)
                for mine, its in zip(one, other, strict=True):
                    assert (mine is None) == (its is None)
                    if its is not None:
                        torch.testing.assert_close(mine, its, rtol=0, atol=0, equal_nan=True, msg=info.name)
            tried += 1
    assert tried


def test_there_are_enough_entries() -> None:
    assert len(set(NAMES)) == len(NAMES) >= 150
