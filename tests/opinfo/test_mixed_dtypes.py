"""Results have eager's dtype where an operation of PyTorch's test table gets tensors of several dtypes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from opwright.errors import OpwrightError
from opwright.ir.program import Program, targets_of
from opwright.operators.stages import derive
from opwright.samples import Sample
from opwright.tracing.interface.specs import describe
from tests.opinfo.cases import LEFT_OUT, Case, case_of, operations, samples_of
from tests.suite.nights import mostly_at_night

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's samples use what PyTorch advises against

BY_DAY = ("ldexp", "native_dropout_backward", "nn.functional.huber_loss")
FIRST = (torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.complex64)
OTHERS = (*FIRST, torch.float64, torch.float16, torch.bool)


def mixed(info: Any, dtype: torch.dtype) -> Iterator[Case]:
    """The first samples in a dtype, with each of several tensors in other ones."""
    for sample in samples_of(info, dtype, 2):
        tensors = [tensor.detach() for tensor in sample.tensors()]
        for index, tensor in enumerate(tensors if len(tensors) > 1 else ()):
            for other in set(OTHERS) - {tensor.dtype}:
                try:
                    yield case_of(info, _with(sample, tensors, index, tensor.to(other)))
                except Exception:  # torch takes no such dtypes, or it is no function of tensors
                    continue


def _with(sample: Sample, tensors: list[torch.Tensor], index: int, tensor: torch.Tensor) -> Sample:
    return sample.with_tensors([*tensors[:index], tensor, *tensors[index + 1 :]])


def _dtypes_of_kernels(case: Case) -> list[torch.dtype] | None:
    """Those of the results of a case; None if it has no kernels."""
    specs = describe([parameter.name for parameter in case.signature.parameters], case.tensors, gradients=False)
    try:
        program = derive(case.function, specs, case.function.__name__).forward
    except (OpwrightError, RuntimeError):  # torch's own error from a trace: the function serves
        return None
    return [_dtypes(program)[name] for name in program.outputs]


def _dtypes(program: Program) -> dict[str, torch.dtype]:
    made = (*program.inputs, *(buffer for step in program.steps for buffer in targets_of(step)))
    return {buffer.name: getattr(torch, buffer.dtype.value) for buffer in made}


@pytest.mark.parametrize(
    "name", mostly_at_night([name for name in operations() if name not in LEFT_OUT], by_day=BY_DAY)
)
def test_dtypes_of_results(name: str) -> None:
    info = operations()[name]
    for dtype in FIRST:
        for case in mixed(info, dtype) if dtype in info.dtypes else ():
            found = _dtypes_of_kernels(case)
            expected = [result.dtype for result in case.function(*case.tensors)]
            assert found in (None, expected), [tensor.dtype for tensor in case.tensors]
