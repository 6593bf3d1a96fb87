"""Operators of ONNX Runtime with our kernels: what they take, what they say otherwise, and what the library needs."""

import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from opwright.deployment.deploying import deploy
from opwright.errors import DeploymentUnsupported
from tests.deployment.models import MODELS, made
from tests.deployment.onnx.operators import CASES, bounded, convolved, masked_softmax, residual_norm
from tests.deployment.onnx.test_forms import with_first_size_open

ort = pytest.importorskip("onnxruntime")
BATCH, LENGTH = torch.export.Dim("batch"), torch.export.Dim("length")


def session_of(deployment):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    (library,) = [file for file in deployment.files if file.endswith(".so")]
    options.register_custom_ops_library(str(deployment.path / library))
    return ort.InferenceSession(str(deployment.path / "model.onnx"), options), deployment.path / library


@pytest.mark.seconds(90)
def test_kernels_run_for_all_sizes_without_python_and_torch(tmp_path):
    onnx = pytest.importorskip("onnx")
    x, mask = torch.randn(6, 33), torch.ones(6, 33, dtype=torch.bool)
    deployment = deploy(
        lambda x, mask: masked_softmax(x, mask, 0.1),
        (x, mask),
        to="onnx",
        at=tmp_path / "out",
        operators="custom",
        dynamic_shapes=({0: BATCH, 1: LENGTH}, {0: BATCH, 1: LENGTH}),
    )
    assert deployment.check().passed
    (node,) = onnx.load(deployment.path / "model.onnx").graph.node
    assert (node.domain, node.op_type) == ("opwright.deployed", "masked_softmax")
    assert onnx.numpy_helper.to_array(node.attribute[0].t) == 0.1  # all digits
    session, library = session_of(deployment)
    for sizes in ((6, 33), (1, 33), (6, 1), (1, 1), (0, 33), (4, 0), (700, 130)):
        x, mask = torch.randn(sizes), torch.ones(sizes, dtype=torch.bool)
        mask[:, 1::3] = False
        names = [each.name for each in session.get_inputs()]
        (found,) = session.run(None, dict(zip(names, (x.numpy(), mask.numpy()), strict=True)))
        torch.testing.assert_close(torch.from_numpy(np.array(found)), masked_softmax.reference(x, mask, 0.1))
    needed = subprocess.run(["readelf", "-d", str(library)], capture_output=True, text=True, check=True).stdout
    assert "NEEDED" in needed
    assert "torch" not in needed
    assert "python" not in needed


def test_library_calls_are_refused_by_name_before_anything_is_written(tmp_path):
    with pytest.raises(DeploymentUnsupported, match="deployed::convolved calls aten::convolution"):
        deploy(convolved, CASES["convolves"].args(), to="onnx", at=tmp_path / "out", operators="custom")
    assert not (tmp_path / "out").exists()


@pytest.mark.nightly
@pytest.mark.seconds(60)
def test_an_empty_batch_is_reduced(tmp_path):
    deployment = deploy(
        lambda x: bounded(x, -0.5, 0.75).sum(0), (torch.randn(3, 4),), to="onnx", at=tmp_path / "out",
        operators="custom", dynamic_shapes=({0: BATCH},),
    )  # fmt: skip
    session, _ = session_of(deployment)
    (result,) = session.run(None, {session.get_inputs()[0].name: np.zeros((0, 4), np.float32)})
    assert result.shape == (4,)


@pytest.mark.nightly
@pytest.mark.seconds(90)
@pytest.mark.parametrize("name", MODELS)
def test_models_agree_with_eager(tmp_path, name):
    model, args, shapes = made(name)
    deployment = deploy(model, args, to="onnx", at=tmp_path / "out", dynamic_shapes=shapes, operators="custom")
    assert deployment.check().passed


@pytest.mark.nightly
@pytest.mark.seconds(90)
@pytest.mark.parametrize("name", [name for name in CASES if name not in ("convolves", "views")])
def test_operators_at_the_edges_agree_with_eager(tmp_path, name):
    function, args, shapes = with_first_size_open(name)
    deployment = deploy(function, args, to="onnx", at=tmp_path / "out", dynamic_shapes=shapes, operators="custom")
    assert deployment.check().passed


@pytest.mark.nightly
@pytest.mark.seconds(90)
def test_results_of_equal_sizes_are_not_mixed_up(tmp_path):
    """Kernels allocate them in any order; runs learn it, also several at once."""
    function, args, shapes = with_first_size_open("norms")
    deployment = deploy(function, args, to="onnx", at=tmp_path / "out", dynamic_shapes=shapes, operators="custom")
    session, _ = session_of(deployment)
    names = [each.name for each in session.get_inputs()]

    def run(seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        rows = (1, 3, 40)[seed % 3]
        given = [torch.randn(size, generator=generator) for size in ((rows, 16), (rows, 16), (16,))]
        found = session.run(None, dict(zip(names, (each.numpy() for each in given), strict=True)))
        expected = residual_norm.reference(*given, 1e-5)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(torch.from_numpy(one), other)

    for seed in range(6):
        run(seed)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(200)))
