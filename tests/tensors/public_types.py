"""Tensor types of PyTorch, torchvision and torchao, as coverage tries them.

Samples, what they stand for, and why what is reported as wrong is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import torch

import opwright
from opwright.tensors import CoverageReport
from opwright.tensors.covering.trial import quiet
from tests.tensors.public_reasons import OF_AO, OF_FLOAT8, OF_INT8, OF_MASKED, OF_NESTED, UNWRAPPED


@dataclass(frozen=True, slots=True)
class Tried:
    """A type, objects of it, and how to see what they stand for."""

    type: type
    samples: Sequence[Any]
    dense: Callable[[Any], torch.Tensor] | None = None
    metadata: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class PublicType:
    """A type and its page.

    Attributes:
        package: Where it is from.
        name: What it is called there.
        about: What the samples are, for the page.
        tried: Makes the samples; the type may only be used inside of the block.
        why: The reasons of what is wrong, by regular expressions of what is said.
        ends_the_process: Whether a function does, so that they are tried in another.
    """

    package: str
    name: str
    about: str
    tried: Callable[[], Any]
    why: Mapping[str, str] = field(default_factory=dict)
    ends_the_process: bool = False

    def report(self, only: Sequence[str] = ()) -> CoverageReport:
        """What coverage finds."""
        with quiet(), self.tried() as tried:
            return opwright.tensors.coverage(
                tried.type,
                tried.samples,
                dense=tried.dense,
                metadata=tried.metadata,
                only=only,
                isolate=self.ends_the_process,
            )

    def page(self, report: CoverageReport) -> str:
        """The page, with versions."""
        versions = [f"torch {torch.__version__}", *([] if self.package == "torch" else [self._version()])]
        preface = f"{self.about} {', '.join(versions)}."
        return report.page(f"Coverage of {self.package}'s {self.name}", preface=preface, why=self.why)

    def _version(self) -> str:
        return f"{self.package} {version(self.package)}"


def floats(*shape: int) -> torch.Tensor:
    """Positive numbers without zeros."""
    return torch.rand(*shape, generator=torch.Generator().manual_seed(0)) + 0.2


@contextmanager
def _dtensor() -> Iterator[Tried]:
    import torch.distributed as dist
    from torch.distributed.tensor import DTensor, Replicate, distribute_tensor

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        mesh = dist.init_device_mesh("cpu", (1,))
        yield Tried(DTensor, [distribute_tensor(x, mesh, [Replicate()]) for x in (floats(4, 4), floats(1, 4, 4))])
    finally:
        dist.destroy_process_group()


@contextmanager
def _masked_tensor() -> Iterator[Tried]:
    from torch.masked import MaskedTensor

    def data(value: Any) -> torch.Tensor:
        mask = value.get_mask()
        if not bool((mask if mask.layout is torch.strided else mask.coalesce().values()).all()):
            raise ValueError("elements are masked")
        found: torch.Tensor = value.get_data()
        return found

    samples = [MaskedTensor(x, torch.ones(x.shape, dtype=torch.bool)) for x in (floats(4, 4), floats(1, 4, 4))]
    yield Tried(MaskedTensor, samples, data)


@contextmanager
def _nested_tensor() -> Iterator[Tried]:
    from torch.nested._internal.nested_tensor import NestedTensor

    def stacked(value: Any) -> torch.Tensor:
        return torch.stack([*value.detach().unbind()])

    def nested(x: torch.Tensor) -> Any:
        count, length = x.shape[:2]
        offsets = torch.arange(0, count * length + 1, length)
        flat = x.reshape(-1, *x.shape[2:])
        return torch.nested.nested_tensor_from_jagged(flat, offsets, min_seqlen=length, max_seqlen=length)

    samples = [nested(floats(3, 4, 4)), nested(floats(2, 4, 4, 4))]
    yield Tried(NestedTensor, samples, stacked)


def _declare_operators_of_torchvision() -> None:
    """The library of these needs CUDA, and is not loaded without; importing torchvision then fails."""
    fragment = torch.library.Library("torchvision", "FRAGMENT")
    for operator in ("nms", "qnms"):
        with suppress(RuntimeError):  # it is there
            fragment.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _fragments.append(fragment)


_fragments: list[torch.library.Library] = []


@contextmanager
def _image() -> Iterator[Tried]:
    _declare_operators_of_torchvision()
    from torchvision.tv_tensors import Image

    yield Tried(Image, [Image(floats(1, 4, 4)), Image(floats(2, 3, 4, 4))])


@contextmanager
def _mask() -> Iterator[Tried]:
    _declare_operators_of_torchvision()
    from torchvision.tv_tensors import Mask

    yield Tried(Mask, [Mask(torch.arange(16).reshape(4, 4) % 3), Mask(floats(4, 4))])


@contextmanager
def _boxes() -> Iterator[Tried]:
    _declare_operators_of_torchvision()
    from torchvision.tv_tensors import BoundingBoxes, set_return_type

    with set_return_type("TVTensor"):
        sample = BoundingBoxes(floats(4, 4), format="XYXY", canvas_size=(8, 8))
        yield Tried(BoundingBoxes, [sample], metadata=("format", "canvas_size", "clamping_mode"))


@contextmanager
def _int8() -> Iterator[Tried]:
    from torchao.quantization import Int8Tensor, PerRow

    yield Tried(Int8Tensor, [Int8Tensor.from_hp(floats(4, 4), PerRow()), Int8Tensor.from_hp(floats(2, 4, 4), PerRow())])


@contextmanager
def _intx() -> Iterator[Tried]:
    from torchao.quantization import IntxUnpackedToInt8Tensor

    yield Tried(IntxUnpackedToInt8Tensor, [IntxUnpackedToInt8Tensor.from_hp(floats(4, 4), (1, 4), torch.int4)])


@contextmanager
def _float8() -> Iterator[Tried]:
    from torchao.quantization import Float8Tensor

    yield Tried(Float8Tensor, [Float8Tensor.from_hp(floats(16, 16)), Float8Tensor.from_hp(floats(2, 16, 16))])


PUBLIC = {
    "dtensor": PublicType("torch", "DTensor", "Samples are replicated, in one process.", _dtensor),
    "masked_tensor": PublicType(
        "torch",
        "MaskedTensor",
        "Nothing in the samples is masked, so that their data is the dense tensor.",
        _masked_tensor,
        OF_MASKED,
    ),
    "nested_tensor": PublicType(
        "torch",
        "NestedTensor",
        "Samples have the jagged layout and sequences of one length, so that the dense tensor is their stack. "
        "Functions in place run on deep copies, whose ragged size is another than the one that they show. "
        "Whether `reshape_as` ends the process depends on what lies in memory.",
        _nested_tensor,
        OF_NESTED,
        ends_the_process=True,
    ),
    "tv_image": PublicType(
        "torchvision", "Image", "Results are plain tensors, as torchvision's default has it.", _image, UNWRAPPED
    ),
    "tv_mask": PublicType(
        "torchvision", "Mask", "Results are plain tensors, as torchvision's default has it.", _mask, UNWRAPPED
    ),
    "tv_bounding_boxes": PublicType(
        "torchvision",
        "BoundingBoxes",
        'Under `set_return_type("TVTensor")`, so that format and size of the canvas must travel.',
        _boxes,
    ),
    "ao_int8": PublicType(
        "torchao", "Int8Tensor", "Weights quantised row by row; `dequantize()` is the dense tensor.", _int8, OF_INT8
    ),
    "ao_intx": PublicType(
        "torchao",
        "IntxUnpackedToInt8Tensor",
        "Weights quantised to int4 in groups of four; `dequantize()` is the dense tensor.",
        _intx,
        OF_AO,
    ),
    "ao_float8": PublicType(
        "torchao",
        "Float8Tensor",
        "Weights quantised row by row; `dequantize()` is the dense tensor.",
        _float8,
        OF_FLOAT8,
    ),
}
