"""PyTorch's own test inputs as functions of tensors: one case for each sample of an OpInfo in a dtype."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from opwright.api.operator import Operator
from opwright.samples import Sample
from opwright.tracing.interface.signature import Kind, Parameter, Signature
from tests.torch_tables import stand_in_for_expecttest

DTYPES = {"float32": torch.float32, "float64": torch.float64}

LEFT_OUT = {
    "nn.functional.linear_cross_entropy": "minutes",
    "nn.functional.multi_head_attention_forward": "minutes",
    "bmm.triton": "hangs without a GPU",
}
"""What no test runs for the whole table, and why."""

_UNDEFINED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}


class Unsuitable(Exception):
    """Why a sample is no function of tensors that an operator could be made from."""


@dataclass(frozen=True, slots=True)
class Case:
    """A call of an operation as a function of its tensors; what is not a tensor is closed over.

    An operator shares no memory with its arguments and changes none that is not declared, so the function changes and
    returns copies where the operation itself would change an argument, or return one or a view of one.

    Attributes:
        function: Takes the tensors by position and returns a tuple of tensors.
        tensors: The arguments.
        signature: One parameter for each of them.
    """

    function: Callable[..., tuple[torch.Tensor, ...]]
    tensors: tuple[torch.Tensor, ...]
    signature: Signature

    @property
    def description(self) -> str:
        """The shapes of the arguments."""
        return ", ".join(str([*tensor.shape]) for tensor in self.tensors)


@cache
def operations() -> dict[str, Any]:
    """PyTorch's table of operations, by name and variant."""
    stand_in_for_expecttest()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal import common_methods_invocations as table

        table.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)  # who compares sets the seed
    return {_full_name(info): info for info in table.op_db}


def _full_name(info: Any) -> str:
    return f"{info.name}.{info.variant_test_name}" if info.variant_test_name else str(info.name)


def samples_of(info: Any, dtype: torch.dtype, count: int, device: str = "cpu") -> Iterator[Sample]:
    """The first samples of an operation, with gradients where it has them, the same ones each time."""
    requires_grad = info.supports_autograd and dtype in info.supported_backward_dtypes(device)
    torch.manual_seed(0)
    for position, sample in enumerate(info.sample_inputs(device, dtype, requires_grad=requires_grad)):
        if position == count:
            return
        yield Sample((sample.input, *sample.args), dict(sample.kwargs))


def case_of(info: Any, sample: Sample) -> Case:
    """Make a function of the tensors of a sample.

    Raises:
        Unsuitable: If there is none that an operator could be made from.
    """
    tensors = tuple(_leaf(tensor) for tensor in sample.tensors())
    if any(tensor.layout != torch.strided or tensor.is_nested for tensor in tensors):
        raise Unsuitable("a sparse or nested tensor")
    if info.name in _UNDEFINED:
        raise Unsuitable("undefined values")
    if not tensors:
        raise Unsuitable("no tensor among the arguments")
    if any(tensor.numel() == 0 for tensor in tensors):
        raise Unsuitable("an empty tensor, which the reference serves by design")
    changes, shared = _sharing(info, sample, tensors)

    def function(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        call = sample.with_tensors([tensor.clone() for tensor in given] if changes else given)
        results = _results(info.op(*call.args, **call.kwargs))
        return tuple(result.clone() if position in shared else result for position, result in enumerate(results))

    function.__name__ = info.name.replace(".", "_").strip("_")
    parameters = tuple(Parameter(f"x{position}", Kind.TENSOR, False) for position in range(len(tensors)))
    return Case(function, tensors, Signature(parameters, None))


def cases_of(name: str, dtype: torch.dtype, count: int) -> Iterator[Case]:
    """The first samples of an operation that are functions of tensors."""
    info = operations()[name]
    for sample in samples_of(info, dtype, count):
        try:
            yield case_of(info, sample)
        except Exception:  # also an operation that refuses its own sample
            continue


def operator_of(case: Case, name: str, function: Callable[..., Any] | None = None) -> Operator:
    """The operator of a case, or of a function of the same tensors that calls the case's.

    What these close over is frozen: a walk does not compare a table of PyTorch's, and without that every call would be
    the function's.
    """
    about = {"name": f"tests::{name}", "signature": case.signature}
    return Operator(function or case.function, freeze=("function", "info", "sample"), **about)


def _sharing(info: Any, sample: Sample, tensors: Sequence[torch.Tensor]) -> tuple[bool, set[int]]:
    """Whether an operation changes one of its arguments, and which results are in memory that is another's too."""
    copies = [tensor.detach().clone() for tensor in tensors]
    before = [copy._version for copy in copies]
    call = sample.with_tensors(copies)
    results = _results(info.op(*call.args, **call.kwargs))
    if [copy._version for copy in copies] != before:
        return True, set()
    taken = [tensor.untyped_storage()._cdata for tensor in (*copies, *results)]
    return False, {
        position for position in range(len(results)) if taken[len(copies) + position] in taken[: len(copies) + position]
    }


def _leaf(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().requires_grad_(tensor.requires_grad)


def _results(returned: Any) -> tuple[torch.Tensor, ...]:
    found = tuple(leaf for leaf in tree_leaves(returned) if isinstance(leaf, torch.Tensor))
    if not found or len(found) < len([leaf for leaf in tree_leaves(returned) if leaf is not None]):
        raise Unsuitable("results that are not tensors")
    if any(tensor.layout != torch.strided or tensor.is_nested for tensor in found):
        raise Unsuitable("a sparse or nested result")
    return found
