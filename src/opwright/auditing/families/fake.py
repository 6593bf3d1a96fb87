"""fake and meta: calls without data give the shapes, strides and dtypes of the real call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from opwright.auditing.case import Case
from opwright.auditing.judge import Judge
from opwright.auditing.witness import Seen
from opwright.checking.accuracy import shown
from opwright.checking.calls import differentiable
from opwright.checking.checks.layouts import sliced, transposed
from opwright.checking.finding import Fault

_LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda tensor: tensor.contiguous(),
    "transposed": lambda tensor: transposed(tensor) if tensor.dim() else tensor,
    "sliced": lambda tensor: sliced(tensor) if tensor.dim() else tensor,
}


def fake(case: Case) -> Seen:
    """Call the function with fake tensors."""
    for what, tensors in _arranged(case):
        mode = FakeTensorMode()
        given = [mode.from_tensor(tensor) for tensor in tensors]
        with mode:
            found = case.call(given)
        _demand_alike(what, found, case.call(tensors), traits=("shape", "dtype", "device", "requires_grad"))
    return {}


def meta(case: Case) -> Seen:
    """Call the function with tensors on the device "meta"."""
    for what, tensors in _arranged(case):
        given = list(map(_without_data, tensors))
        found = case.call(given)
        _demand_alike(what, found, case.call(tensors), traits=("shape", "dtype", "requires_grad"))
        if elsewhere := [str(tensor.device) for tensor in found if not tensor.is_meta]:
            raise Fault(f"{what}: a result is on {elsewhere[0]}, expected meta")
    return {}


def symbolic(case: Case) -> Seen:
    """Call the function with symbolic sizes: they must stay symbolic wherever the reference keeps them so."""
    mode = FakeTensorMode(shape_env=ShapeEnv())
    given = [_with_symbols(mode, tensor, f"tensor_{index}") for index, tensor in enumerate(case.tensors)]
    with mode:
        found = case.call(given)
    real = case.call([tensor.clone() for tensor in case.tensors])
    for index, (mine, expected) in enumerate(zip(found, real, strict=True)):
        sizes = [_hint(size) for size in mine.shape]
        if sizes != list(expected.shape):
            raise Fault(f"output {index} has shape {sizes}, the real call's has {list(expected.shape)}")
    return {"sizes of output": [_symbols(output.shape) for output in found]}


def _arranged(case: Case) -> Iterator[tuple[str, list[torch.Tensor]]]:
    for layout, arrange in _LAYOUTS.items():
        for asking in (False, True):
            plain = [arrange(tensor.clone()).detach() for tensor in case.tensors]  # which the function may change
            tensors = [tensor.requires_grad_(asking and differentiable(tensor)) for tensor in plain]
            if case.changed and asking:
                continue
            yield f"{layout} inputs{' that ask for gradients' if asking else ''}", tensors


def _without_data(tensor: torch.Tensor) -> torch.Tensor:
    """The same tensor on the device meta; `to` would not keep the strides of a slice."""
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
    return made.requires_grad_(tensor.requires_grad)


def _demand_alike(
    what: str, found: Sequence[torch.Tensor], real: Sequence[torch.Tensor], traits: Sequence[str]
) -> None:
    if len(found) != len(real):
        raise Fault(f"{what}: {len(found)} results, the real call has {len(real)}")
    for index, (mine, expected) in enumerate(zip(found, real, strict=True)):
        for trait in traits:
            _demand_equal(f"{what}: {trait} of output {index}", getattr(mine, trait), getattr(expected, trait))
        _demand_equal(f"{what}: strides of output {index}", _strides(mine), _strides(expected))


def _demand_equal(what: str, found: Any, real: Any) -> None:
    if found != real:
        raise Fault(f"{what}: got {shown(found)}, the real call's is {shown(real)}")


def _strides(tensor: torch.Tensor) -> list[int]:
    """The strides of axes longer than one; the others have no effect."""
    return [] if 0 in tensor.shape else [s for s, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1]


def _with_symbols(mode: FakeTensorMode, tensor: torch.Tensor, name: str) -> torch.Tensor:
    context: Any = StatelessSymbolicContext([DimDynamic.DYNAMIC] * tensor.dim())
    return mode.from_tensor(tensor, source=ConstantSource(name), symbolic_context=context)


def _symbols(sizes: Sequence[Any]) -> list[str]:
    return ["a symbol" if _known(size) is None else str(_known(size)) for size in sizes]


def _known(size: Any) -> int | None:
    known: int | None = size if isinstance(size, int) else size.node.maybe_as_int()
    return known


def _hint(size: Any) -> int:
    return size if isinstance(size, int) else int(size.node.hint)


JUDGES = (
    Judge("fake tensors", fake, differentiates=False),
    Judge("meta tensors", meta, differentiates=False),
    Judge("symbolic sizes", symbolic, differentiates=False),
)
