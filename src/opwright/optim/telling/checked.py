"""`check` of an optimizer: its steps against its definition in float64, and the derivatives of `functional`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.autograd import gradcheck, gradgradcheck

from opwright.checking.verdict import Row, Verdict
from opwright.optim.definition import Definition
from opwright.optim.functional import functional
from opwright.optim.telling.widened import Widened

STEPS = 3
MATRICES = ((5, 7), (8, 3), (1, 4))
SHAPES = (*MATRICES, (37,), (2, 3, 4), (), (0, 3))
_ERRORS_OF_EAGER = 2.0
_LEAST_ERRORS = 16.0  # units in the last place, in which kernels may differ where eager happens to be exact
_SMALL = (3, 4)

Make = Callable[..., torch.optim.Optimizer]


def checked(make: Make, definition: Definition, hyper: Mapping[str, Any], dtypes: Sequence[torch.dtype]) -> Verdict:
    """Judge an optimizer.

    Args:
        make: Makes one of parameters, with these hyper-parameters.
        definition: Its definition.
        hyper: The hyper-parameters.
        dtypes: Of parameters.

    Returns:
        A row for each shape and dtype, and one for each order of derivatives.
    """
    rows = [_of_steps(make, definition, hyper, shape, dtype) for dtype in dtypes for shape in SHAPES]
    return Verdict(definition.name, (*rows, *_of_derivatives(definition, hyper)))


def _drawn(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def _of_steps(
    make: Make, definition: Definition, hyper: Mapping[str, Any], shape: tuple[int, ...], dtype: torch.dtype
) -> Row:
    sample = f"{tuple(shape)} {str(dtype).removeprefix('torch.')}"
    generator = torch.Generator().manual_seed(0)
    start = _drawn(shape, generator).to(dtype)
    gradients = [_drawn(shape, generator).to(dtype) for _ in range(STEPS)]
    try:
        with Widened():  # type: ignore[no-untyped-call]  # torch's
            exact = _by_definition(definition, hyper, start.double(), [grad.double() for grad in gradients])
        eager = _by_definition(definition, hyper, start, gradients)
        param = start.clone().requires_grad_()
        optimizer = make([param])
        for grad in gradients:
            param.grad = grad.clone()
            optimizer.step()
    except ValueError as refused:  # a shape that this optimizer does not take
        return Row("cpp", "steps", sample, "skipped", str(refused))
    scale = max(exact.abs().max().item(), torch.finfo(dtype).tiny) if exact.numel() else 1.0
    error, eager_error = (
        (found.detach().double() - exact).abs().max().item() / scale if exact.numel() else 0.0
        for found in (param, eager)
    )
    most = max(_ERRORS_OF_EAGER * eager_error, _LEAST_ERRORS * torch.finfo(dtype).eps)
    detail = "" if error <= most else f"the parameter differs from that of the definition after {STEPS} steps"
    return Row("cpp", "steps", sample, "passed" if error <= most else "failed", detail, error, eager_error)


def _by_definition(
    definition: Definition, hyper: Mapping[str, Any], param: torch.Tensor, gradients: Sequence[torch.Tensor]
) -> torch.Tensor:
    states: list[dict[str, torch.Tensor]] | None = None
    params = [param]
    for step, grad in enumerate(gradients, 1):
        params, states = functional(definition, params, [grad], states, float(step), hyper)
    return params[0]


def _of_derivatives(definition: Definition, hyper: Mapping[str, Any]) -> Iterator[Row]:
    generator = torch.Generator().manual_seed(0)
    given = [_drawn(_SMALL, generator).requires_grad_() for _ in range(2)]
    states = [definition.start(name, given[0], hyper) for name in definition.states]
    begun = [None if state is None else state.detach() + 0.5 for state in states]

    def stepped(param: torch.Tensor, grad: torch.Tensor) -> Any:
        known = {name: state for name, state in zip(definition.states, begun, strict=True) if state is not None}
        with Widened():  # type: ignore[no-untyped-call]  # torch's
            new, made = functional(definition, [param], [grad], [known], 2.0, hyper)
        return (*new, *(state for state in made[0].values() if state.requires_grad))

    for name, compare in (("first derivatives", gradcheck), ("second derivatives", gradgradcheck)):
        try:
            compare(stepped, given)
        except (RuntimeError, ValueError) as error:
            yield Row("functional", name, str(_SMALL), "failed", str(error).partition("\n")[0])
        else:
            yield Row("functional", name, str(_SMALL), "passed")
