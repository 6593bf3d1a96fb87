"""What PyTorch refuses by shape or dtype is refused: the wrong inputs of its own test table, a few by day."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from opwright.api.operator import Operator
from opwright.checking.checks.refusals import misshapen
from opwright.errors import OpwrightError
from opwright.samples import Sample
from opwright.settings import Settings
from opwright.tracing.interface.signature import Kind, Parameter, Signature
from tests.opinfo.cases import operations, samples_of
from tests.quick_compiler import OPTIMIZING_NOTHING, quick_compiler
from tests.suite.kept_libraries import another_cache
from tests.suite.nights import mostly_at_night

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # PyTorch's samples use what PyTorch advises against
    pytest.mark.falls_back,
]

UNREAD_BY_DAY = ("nn.functional.relu", "sort")
BY_DAY = ("addbmm", "index_add", "rsub", "softmax", "nn.functional.nll_loss")


OTHER_DTYPES = (torch.float64, torch.int64, torch.bool, torch.complex64, torch.bfloat16)


MOST_DIMENSIONS = 64  # torch's reductions take no more, kernels do
EXCEPTIONS = {
    "istft": "looks for the least element of none",
    "nn.functional.linear_cross_entropy": "minutes",
    "nn.functional.multi_head_attention_forward": "minutes",
    "bmm.triton": "hangs without a GPU",
}


@pytest.fixture(scope="module")
def settings() -> Settings:
    return Settings(another_cache(), compiler=quick_compiler(OPTIMIZING_NOTHING), notify=False)


def wrong_inputs(info: Any) -> Iterator[Sample]:
    """Those of the table, and the first sample with each tensor in other shapes and dtypes: some are wrong."""
    for wrong in info.error_inputs("cpu") if info.error_inputs_func else ():
        sample = wrong.sample_input
        yield Sample((sample.input, *sample.args), dict(sample.kwargs))
    dtype = next((dtype for dtype in (torch.float32, torch.complex64, torch.bool) if dtype in info.dtypes), torch.int64)
    for sample in samples_of(info, dtype, 1):
        if any(tensor.layout != torch.strided for tensor in sample.tensors()):
            continue
        yield from misshapen(sample)
        tensors = sample.tensors()
        for index, tensor in enumerate(tensors):
            for other in OTHER_DTYPES:
                if other is not tensor.dtype and not (tensor.is_complex() and not other.is_complex):
                    yield sample.with_tensors([*tensors[:index], tensor.detach().to(other), *tensors[index + 1 :]])


def _said(error: Exception) -> str:
    """Without where it was raised."""
    return str(error).partition("\nException raised from")[0]


def outcome(function: Any, sample: Sample) -> Exception | None:
    try:
        function(*(tensor.detach().clone() for tensor in sample.tensors()))
    except Exception as error:
        return error
    return None


def accepted(info: Any, sample: Sample, settings: Settings, *, is_read: bool = True) -> str:
    """What differs between an operator and eager for a wrong input, in words; empty if nothing does."""

    def function(*given: torch.Tensor) -> Any:
        call = sample.with_tensors(given)
        result = info.op(*call.args, **call.kwargs)
        return result if is_read else given[0] == given[0]

    function.__name__ = ("wrong_" if is_read else "wrong_unread_") + info.name.replace(".", "_").strip("_")
    expected = outcome(function, sample)
    if expected is None or any(tensor.dim() > MOST_DIMENSIONS for tensor in sample.tensors()):
        return ""
    if not sample.tensors():
        return ""
    parameters = tuple(Parameter(f"x{position}", Kind.TENSOR, False) for position in range(len(sample.tensors())))
    about = {"name": function.__name__, "signature": Signature(parameters, None), "settings": settings}
    error = outcome(Operator(function, freeze=("info", "sample"), **about), sample)
    if isinstance(error, OpwrightError) or (type(error) is type(expected) and _said(error) == _said(expected)):
        return ""
    return f"{[tuple(t.shape) for t in sample.tensors()]}: {error!r}, and eager {expected!r}"


@pytest.mark.parametrize(
    "name", mostly_at_night([name for name in operations() if name not in EXCEPTIONS], by_day=BY_DAY)
)
def test_wrong_inputs(name: str, settings: Settings) -> None:
    info = operations()[name]
    assert not [differs for sample in wrong_inputs(info) if (differs := accepted(info, sample, settings))]


@pytest.mark.parametrize(
    "name", mostly_at_night([name for name in operations() if name not in EXCEPTIONS], by_day=UNREAD_BY_DAY)
)
def test_wrong_inputs_of_what_nobody_reads(name: str, settings: Settings) -> None:
    info = operations()[name]
    differ = (accepted(info, sample, settings, is_read=False) for sample in wrong_inputs(info))
    assert not [each for each in differ if each]
