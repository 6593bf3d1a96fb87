"""Kernels run on the GPUs that they were compiled for; on others the reference does, and that is said once."""

import warnings

import pytest
import torch

from opwright.deployment.wheels.runtime import gpus
from opwright.deployment.wheels.runtime.gpus import Gpus, gpu_mismatch

TARGETS = ("sm_80", "sm_90", "compute_90")
MINE = "its kernels are for sm_80, sm_90, compute_90, and this GPU is of compute capability "
OLD = "its kernels need a driver for CUDA {} or newer, and this one is for 12.4"


@pytest.mark.parametrize(
    ("targets", "capability", "cuda", "driver", "sentence"),
    [
        (TARGETS, 80, (13, 5), (13, 0), None),
        (TARGETS, 89, (13, 5), (13, 0), None),
        (TARGETS, 90, (13, 5), (14, 1), None),
        (TARGETS, 90, None, (12, 4), None),
        (TARGETS, 75, (13, 5), (13, 5), MINE + "7.5"),
        (TARGETS, 70, (13, 5), (13, 5), MINE + "7.0"),
        (TARGETS, 90, (13, 5), (12, 4), OLD.format("13")),
        (TARGETS, 120, (13, 5), (13, 5), None),
        (TARGETS, 120, (12, 5), (12, 4), OLD.format("12.5")),
        (("sm_100",), 103, (13, 0), (13, 0), None),
        (("sm_100",), 120, (13, 0), (13, 0), "its kernels are for sm_100, and this GPU is of compute capability 12.0"),
    ],
)
def test_a_gpu_that_kernels_do_not_run_on_is_one_sentence(targets, capability, cuda, driver, sentence):
    assert gpu_mismatch(targets, cuda, capability, driver) == sentence


def test_a_gpu_is_asked_once(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", {0: (9, 0), 1: (7, 5)}.get)
    monkeypatch.setattr(gpus, "_version_of_driver", lambda: (13, 5))
    mine = Gpus("mine", TARGETS, (13, 5))
    with pytest.warns(RuntimeWarning, match=f"mine runs its references on cuda:1: {MINE}7.5"):
        assert [mine.serve(0), mine.serve(1)] == [True, False]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [mine.serve(0), mine.serve(1)] == [True, False]
        assert not Gpus("mine", (), None).serve(0)
