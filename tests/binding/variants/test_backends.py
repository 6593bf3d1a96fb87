from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from opwright.binding.variants import backends
from opwright.binding.variants.backends import backend_for, devices_of, examine, refuse_another
from opwright.errors import CudaCompilerMissing, NoKernel, RungMissing
from opwright.settings import Settings

ON_HOST = Settings(Path(), cuda_on_host=True)


class Elsewhere:
    """Stands for `torch.Tensor`: a tensor of which only the place is asked."""

    def __init__(self, device: str, layout: torch.layout = torch.strided) -> None:
        self.device = torch.device(device)
        self.layout = layout


@pytest.fixture
def anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends.torch, "Tensor", Elsewhere)


@pytest.mark.usefixtures("anywhere")
def test_tensors_are_served_where_they_are() -> None:
    usual = Settings(Path())

    assert backend_for([Elsewhere("cpu"), 2.0], usual) == backend_for([], usual) == "cpp"
    assert backend_for([Elsewhere("cuda:1"), None, Elsewhere("cuda:1")], usual) == "cuda"
    assert backend_for([Elsewhere("cpu")], ON_HOST) == "cuda"


REFUSED = {
    "two devices": (["cpu", "cuda:0"], "its tensors are on several devices: cpu, cuda:0"),
    "two GPUs": (["cuda:0", "cuda:1"], "its tensors are on several devices: cuda:0, cuda:1"),
    "another kind": (["xpu:0"], "there are no kernels for torch.strided tensors on xpu yet"),
}


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("name", REFUSED)
def test_other_places_have_no_kernels(name: str) -> None:
    devices, sentence = REFUSED[name]
    with pytest.raises(NoKernel, match=rf"^{sentence}\nhint: move "):
        backend_for([Elsewhere(device) for device in devices], Settings(Path()))


@pytest.mark.usefixtures("anywhere")
def test_sparse_tensors_have_no_kernels() -> None:
    with pytest.raises(
        NoKernel, match=r"no kernels for torch\.sparse_coo tensors on cuda yet\nhint: convert it with \.to_dense"
    ):
        backend_for([Elsewhere("cuda:0", torch.sparse_coo)], Settings(Path()))


def test_what_cuda_needs_is_looked_for_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(tmp_path / "cache")
    monkeypatch.setattr(backends.torch.version, "cuda", None)
    with pytest.raises(NoKernel, match=r"^this PyTorch is built without CUDA\nhint: "):
        examine("cuda", settings)
    monkeypatch.setattr(backends.torch.version, "cuda", "13.0")
    monkeypatch.setattr(backends.torch.cuda, "is_available", lambda: False)
    with pytest.raises(NoKernel, match=r"^there is no NVIDIA GPU, or no driver for it\nhint: "):
        examine("cuda", settings)
    monkeypatch.setattr(backends.torch.cuda, "is_available", lambda: True)
    with pytest.raises(CudaCompilerMissing, match=r"^/no/nvcc cannot compile CUDA kernels: it was not found"):
        examine("cuda", replace(settings, cuda_compiler="/no/nvcc"))
    examine("cuda", settings)


def test_on_the_host_cuda_kernels_take_the_place_of_those_in_cpp(tmp_path: Path) -> None:
    settings = replace(ON_HOST, cache_directory=tmp_path / "cache")
    examine("cuda", settings)
    with pytest.raises(NoKernel, match=r"^OPWRIGHT_CUDA_ON_HOST has CUDA kernels serve"):
        examine("cpp", settings)

    assert (devices_of("cpp", ON_HOST), devices_of("cuda", ON_HOST)) == ((), ("cpu", "cuda"))
    assert (devices_of("cpp", Settings(Path())), devices_of("cuda", Settings(Path()))) == (("cpu",), ("cuda",))


def test_a_pinned_call_is_not_served_by_the_other_target() -> None:
    refuse_another("cpp", "cpp")
    refuse_another("cuda", "composed")
    with pytest.raises(RungMissing, match="the rung 'cuda' has no kernels for tensors on this device; 'cpp' has"):
        refuse_another("cuda", "cpp")
