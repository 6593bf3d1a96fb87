"""A library of operators: right for every dtype and size, with gradients, beside others; else one sentence."""

import shutil
from itertools import pairwise

import pytest
import torch

from opwright.deployment.library.build import build_library
from opwright.deployment.library.planned import plan_library
from opwright.deployment.library.registration import shim_declaration
from opwright.deployment.programs.export import export
from opwright.settings import Settings
from tests.deployment.models import made, stretched

_CASES = [
    (shape, dtype)
    for shape in ((4, 9), (1, 9), (0, 9), (3, 1))
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16)
]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The library of a model, loaded into this process, which has the operator in Python too."""
    planned = plan_library(export(*made("numbers")))
    folder = tmp_path_factory.mktemp("library")
    path = build_library(planned, folder, Settings.from_environment())
    torch.ops.load_library(str(path))
    return path, planned


@pytest.fixture(scope="module")
def shipped(library):
    _, planned = library
    packaged = planned.operators["deployed::stretched"]
    return getattr(getattr(torch.ops, packaged.namespace), packaged.short_name)


@pytest.mark.nightly
@pytest.mark.parametrize(("shape", "dtype"), _CASES)
def test_every_dtype_and_size_is_right(shipped, shape, dtype):
    x = torch.randn(shape).to(dtype)
    for numbers in ((2, 0.25), (3, 0.5)):
        torch.testing.assert_close(shipped(x, *numbers), stretched.reference(x, *numbers))


@pytest.mark.nightly
def test_its_kernels_are_run(library, shipped):
    _, planned = library
    assert len(planned.operators["deployed::stretched"].kernels) == 2
    x = torch.randn(4, 9)
    with torch.profiler.profile() as profile:
        shipped(x, 2, 0.25)
    assert not [each.key for each in profile.key_averages() if each.key in ("aten::pow", "aten::mul")]


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_are_recorded(shipped, dtype):
    x = torch.randn(4, 9, dtype=dtype, requires_grad=True)
    found, expected = (torch.autograd.grad(f(x, 2, 0.25).sum(), x)[0] for f in (shipped, stretched.reference))
    torch.testing.assert_close(found, expected)


@pytest.mark.nightly
def test_other_layouts_and_tensors_without_values_are_right(shipped):
    x = torch.randn(9, 4).t()
    torch.testing.assert_close(shipped(x, 2, 0.25), stretched.reference(x, 2, 0.25))
    assert shipped(x, 2, 0.25).stride() == stretched.reference(x, 2, 0.25).stride()
    assert shipped(torch.empty(5, 9, device="meta"), 2, 0.25).shape == (5, 9)


@pytest.mark.nightly
def test_with_other_headers_it_has_another_name(monkeypatch):
    """Beside a library of an older opwright, whose kernels read alike, its operators are its own."""
    exported = export(*made("numbers"))
    before = plan_library(exported).operators["deployed::stretched"].name
    monkeypatch.setattr("opwright.deployment.library.planned.header_digests", lambda directory: {"kernel.h": "new"})
    assert plan_library(exported).operators["deployed::stretched"].name != before


@pytest.mark.nightly
def test_autocast_sees_the_operations(shipped):
    x = torch.randn(4, 9)
    with torch.autocast("cpu", torch.bfloat16):
        assert shipped(x, 2, 0.25).dtype == stretched.reference(x, 2, 0.25).dtype


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ((torch.ones(4, 9), 5, 0.25), r"deployed for other arguments than Float\[4, 9\] 5 0.25"),
        ((torch.ones(4, 9, 2), 2, 0.25), r"deployed for other arguments than Float\[4, 9, 2\]"),
        ((torch.ones(4, 9, dtype=torch.int32), 2, 0.25), r"deployed for other arguments than Int\[4, 9\]"),
        ((torch.ones(4, 9).to_sparse(), 2, 0.25), "SparseCPU"),
    ],
)
def test_other_calls_end_in_a_sentence(shipped, given, sentence):
    with pytest.raises(RuntimeError, match=sentence):
        shipped(*given)


@pytest.mark.nightly
def test_a_second_deployment_of_the_same_lives_beside_it(library, shipped, tmp_path):
    path, _ = library
    other = shutil.copy(path, tmp_path / "libother.so")
    torch.ops.load_library(str(other))
    x = torch.randn(4, 9)
    torch.testing.assert_close(shipped(x, 2, 0.25), stretched.reference(x, 2, 0.25))
    torch.testing.assert_close(stretched(x, 2, 0.25), stretched.reference(x, 2, 0.25))


@pytest.mark.nightly
def test_names_tell_what_is_computed(library):
    _, planned = library
    again = plan_library(export(*made("numbers")))
    assert again.library.text == planned.library.text
    assert again.references.text == planned.references.text
    names = [plan_library(export(*made(model))).operators["deployed::gated"].name for model in ("dynamic", "mlp")]
    assert all(first != second for first, second in pairwise(names))


def test_functions_of_c_are_named_after_what_they_compute():
    """They are in one namespace for a whole process."""
    planned = [
        plan_library(export(*made(model)), shims=True).operators["deployed::gated"] for model in ("dynamic", "mlp")
    ]
    shims = [shim_declaration(operator) for operator in planned]
    assert all("gated_" in shim for shim in shims)
    assert shims[0].partition("(")[0] != shims[1].partition("(")[0]


def test_sizes_that_are_only_tried_warn_nobody(capfd):
    """A variance of one value warns, in C++."""
    plan_library(export(*made("loss")))
    assert capfd.readouterr().err == ""
