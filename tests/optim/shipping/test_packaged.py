"""Which kernels of a package serve a kind of parameters, and on which device."""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch

from opwright.errors import NoKernel
from opwright.optim.kinds import Kind
from opwright.optim.serving.kernels import Wanted
from opwright.optim.shipping.packaged_optimizers import PackagedKernels


class TwoGpus:
    """The second one is too old; one that nothing is on is not asked about."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def serve(self, index: int) -> bool:
        self.asked.append(index)
        return index == 0


KIND = Kind(
    sizes=(False, False), param=torch.float32, grad=torch.float32, states=(), master=None, constants=(),
    numbers=("lr",), maximize=False, scaled=False, written=False, at_random=False, is_flat=True, device="cuda",
)  # fmt: skip


def packaged(gpus: Any) -> PackagedKernels:
    record = {"name": "sgd_1", "operands": ("param", "grad"), "numbers": ("lr",), "one_by_one": False}
    kernels = PackagedKernels("SGD")
    kernels.equip("package", {repr(KIND): [record]}, lambda name: lambda address: 8, gpus)
    return kernels


def test_a_gpu_without_kernels_leaves_the_others_theirs() -> None:
    gpus = TwoGpus()
    kernels = packaged(gpus)
    assert [variant.name for variant in kernels.known(None, KIND, torch.device("cuda", 0))] == ["sgd_1"]
    assert gpus.asked == [0]
    assert kernels.known(None, KIND, torch.device("cuda", 1)) == []
    assert [variant.name for variant in kernels.known(None, KIND, torch.device("cuda", 0))] == ["sgd_1"]


def test_a_package_without_kernels_for_gpus_has_none() -> None:
    assert packaged(None).known(None, KIND, torch.device("cuda", 0)) == []


@pytest.mark.parametrize(("index", "told"), [(0, "are for other hyper-parameters"), (1, "none of its kernels is for")])
def test_what_is_missing_is_told_for_the_gpu_of_the_parameter(index: int, told: str) -> None:
    class Param:
        device = torch.device("cuda", index)

    wanted = Wanted(KIND, {}, cast("dict[str, torch.Tensor]", {"param": Param()}), {})
    with pytest.raises(NoKernel, match=told):
        packaged(TwoGpus()).another(None, wanted)
