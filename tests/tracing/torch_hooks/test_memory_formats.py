"""Strides of meta tensors, with the operations mended that torch tells wrongly, against eager's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils._pytree import tree_leaves, tree_map_only

from opwright.tracing.interface.orders import order_of
from opwright.tracing.torch_hooks.layouts.memory_formats import MemoryFormats
from opwright.tracing.torch_hooks.layouts.processor_formats import ProcessorFormats
from tests.opinfo.cases import operations, samples_of
from tests.suite.strides import stride_difference

# What torch tells wrongly besides of meta tensors in one of the layouts.
KNOWN = {
    *("copysign", "div.floor_rounding", "div.trunc_rounding", "floor_divide", "normal", "native_dropout_backward"),
    *(
        "nn.functional.conv_transpose3d",
        "nn.functional.max_unpool1d",
        "nn.functional.max_unpool2d.grad",
        "nn.functional.max_unpool2d",
    ),
    *("nn.functional.pad.reflect", "nn.functional.pad.replicate", "nn.functional.pad.replicate_negative"),
    "nn.functional.pad.circular",
}

KNOWN_OF_IMAGES = {"all", "any", "gradient", "nonzero_static"}  # along no dimension; of volumes; as written
MINUTES = {"nn.functional.linear_cross_entropy", "nn.functional.multi_head_attention_forward", "bmm.triton"}


def in_channels_last(tensor: Tensor) -> Tensor:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return tensor.contiguous(memory_format=formats[tensor.dim()]) if tensor.dim() in formats else tensor


def reversed_in_memory(tensor: Tensor) -> Tensor:
    reverse = tuple(range(tensor.dim()))[::-1]
    return tensor.permute(reverse).contiguous().permute(reverse)


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "as written": lambda tensor: tensor,
    "in channels last": in_channels_last,
    "reversed": reversed_in_memory,
}


def differences(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Iterator[str]:
    """How results on meta tensors lie otherwise than eager's, in each layout of the arguments."""
    for layout, laid_out in LAYOUTS.items():
        given = tree_map_only(Tensor, lambda t, lay=laid_out: lay(t) if t.layout is torch.strided else t, arguments)
        if layout != "as written" and not any(_is_ordered(leaf) for leaf in tree_leaves(given)):
            continue
        try:
            eager = function(*given)
            like = tree_map_only(Tensor, lambda t: torch.empty_strided(t.shape, t.stride(), dtype=t.dtype), given)
            with torch.device("meta"), MemoryFormats(), ProcessorFormats():
                told = function(*tree_map_only(Tensor, lambda t: t.to("meta"), like))
        except Exception:  # a call without meta tensors
            continue
        for one, other in zip(tree_leaves(told), tree_leaves(eager), strict=False):
            if isinstance(one, Tensor) and one.shape == other.shape and not _is_sparse(one, other):
                differs = stride_difference(torch.empty_like(one), other)
                yield from [f"{layout}: {differs}"] if differs else []


def _is_ordered(value: object) -> bool:
    return isinstance(value, Tensor) and value.layout is torch.strided and order_of(value) != ()


def _is_sparse(*tensors: Tensor) -> bool:
    return any(tensor.layout is not torch.strided or tensor.is_nested for tensor in tensors)


IMAGES, VOLUMES, WIDE = torch.randn(2, 4, 9, 7), torch.randn(2, 4, 5, 9, 7), torch.randn(5, 20)
MENDED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "convolution": (functional.conv2d, (IMAGES, torch.randn(6, 4, 3, 3))),
    "in float64": (functional.conv2d, (IMAGES.double(), torch.randn(6, 4, 3, 3).double())),
    "depthwise": (lambda x, w: functional.conv2d(x, w, groups=4), (IMAGES, torch.randn(4, 1, 3, 3))),
    "transposed": (functional.conv_transpose2d, (IMAGES, torch.randn(4, 6, 3, 3))),
    "in three dimensions": (functional.conv3d, (VOLUMES, torch.randn(6, 4, 3, 3, 3))),
    "in three dimensions, float64": (functional.conv3d, (VOLUMES.double(), torch.randn(6, 4, 3, 3, 3).double())),
    "batch norm": (lambda x: functional.batch_norm(x, None, None, None, None, True), (IMAGES,)),
    "padding": (lambda x: functional.pad(x, (1, 2)), (IMAGES,)),
    "pixel shuffle": (lambda x: functional.pixel_shuffle(x, 2), (IMAGES,)),
    "decomposition in singular values": (lambda x: torch.linalg.svd(x[0]), (IMAGES,)),
    "of low rank": (lambda x: torch.svd_lowrank(x, 2), (WIDE,)),
    "principal components": (lambda x: torch.pca_lowrank(x, 2), (WIDE,)),
    "eigenvectors": (torch.linalg.eig, (WIDE @ WIDE.T,)),
    "Fourier transform of two dimensions": (torch.fft.rfft2, (WIDE,)),
    "its inverse": (torch.fft.irfft2, (WIDE + 0j,)),
    "channel shuffle": (lambda x: functional.channel_shuffle(x, 2), (IMAGES,)),
    "roll": (lambda x: torch.roll(x, 1, 1), (IMAGES,)),
    "roll of volumes along two dimensions": (lambda x: torch.roll(x, (1, -2), (0, 3)), (VOLUMES,)),
    "roll by nothing": (lambda x: torch.roll(x, (1, 4), (0, 1)), (IMAGES,)),
    "roll of all": (lambda x: torch.roll(x, 1), (IMAGES,)),
    "logarithm of a sigmoid": (functional.logsigmoid, (IMAGES,)),
    "membership": (lambda x: torch.isin(x, x[0]), (VOLUMES,)),
    "random slopes": (lambda x: functional.rrelu(x, training=True), (IMAGES,)),
}


@pytest.mark.parametrize("operation", MENDED)
def test_an_operation_that_is_mended(operation: str) -> None:
    function, arguments = MENDED[operation]
    assert list(differences(function, arguments)) == []


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")  # of what such calls are given
@pytest.mark.parametrize("name", [name for name in operations() if name not in MINUTES])
def test_an_operation_of_torch_on_images(name: str) -> None:
    info = operations()[name]
    if torch.float32 not in info.supported_dtypes("cpu"):
        pytest.skip("it has no float32")
    for sample in samples_of(info, torch.float32, 6):
        named = tree_map_only(Tensor, Tensor.detach, sample.kwargs)
        for large in (IMAGES, VOLUMES, IMAGES.abs() + 1):
            given = tuple(_instead(argument, sample.args[0], large) for argument in sample.args)
            found = list(differences(lambda args, kwargs: info.op(*args, **kwargs), (given, named)))
            assert found == [] or name in KNOWN | KNOWN_OF_IMAGES


def _instead(argument: Any, first: Any, large: Tensor) -> Any:
    """Another tensor in place of the first one and of those of its sizes."""
    if not isinstance(argument, Tensor) or not isinstance(first, Tensor):
        return argument
    is_like = argument.shape == first.shape and argument.is_floating_point()
    return large.clone() if is_like else argument.detach()


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state")
@pytest.mark.parametrize("name", operations())
def test_an_operation_of_torch(name: str) -> None:
    info = operations()[name]
    if torch.float32 not in info.supported_dtypes("cpu"):
        pytest.skip("it has no float32")
    for sample in samples_of(info, torch.float32, 6):
        given = tree_map_only(Tensor, Tensor.detach, (sample.args, sample.kwargs))
        found = list(differences(lambda args, kwargs: info.op(*args, **kwargs), given))
        assert found == [] or name in KNOWN
