"""Passes that are an `autograd.Function`, or any callable of torch operations: it runs on detached tensors.

Its backward pass is torch's, over the graph that the call records.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from opwright.errors import Place, RungMissing, WrongResult
from opwright.handwritten.expected import Tensors, check_made
from opwright.handwritten.passes import Made, Recorded


class FunctionPasses:
    """The author's function.

    Args:
        function: Takes the arguments of the operator, by position.
        name: Its name.
        place: Where it is defined.
    """

    def __init__(self, function: Callable[..., Any], name: str, place: Place) -> None:
        self._function = function
        self._name = name
        self._place = place

    def forward(self, args: Sequence[Any], expected: Tensors, *, recording: bool) -> Made:
        """Run it; see `Passes`."""
        given = [
            arg.detach().requires_grad_(recording and arg.requires_grad) if isinstance(arg, torch.Tensor) else arg
            for arg in args
        ]
        with torch.set_grad_enabled(recording):
            returned = self._function(*given)
        outputs = (returned,) if isinstance(returned, torch.Tensor) else returned
        check_made(self._name, self._place, outputs, expected.described)
        return Made(tuple(output.detach() for output in outputs), (), (given, outputs) if recording else None)

    def backward(self, recorded: Recorded) -> Mapping[int, torch.Tensor | None]:
        """Differentiate what it recorded; see `Passes`.

        Raises:
            WrongResult: If a result has a cotangent but no recorded graph.
        """
        given, outputs = recorded.state
        flowing = [(o, g) for o, g in zip(outputs, recorded.cotangents, strict=True) if g is not None]
        if not all(output.requires_grad for output, _ in flowing):
            raise WrongResult(
                f"{self._name} returned a result without a gradient, but a cotangent arrives for it",
                place=self._place,
                hint="return the result of Function.apply, or of differentiable torch operations",
            )
        found = torch.autograd.grad(
            [output for output, _ in flowing],
            [given[position] for position in recorded.wanted],
            [gradient for _, gradient in flowing],
            retain_graph=True,
            allow_unused=True,
        )
        return dict(zip(recorded.wanted, found, strict=True))

    def examine(self) -> None:
        """Nothing needs to be built."""

    def count(self) -> int:
        """The number of instances: one serves all calls."""
        return 1

    def source(self) -> str:
        """The text of the class or function."""
        written = getattr(self._function, "__self__", None)  # `apply` of an autograd.Function: show the class
        try:
            return inspect.getsource(written if inspect.isclass(written) else inspect.unwrap(self._function))
        except (OSError, TypeError) as error:
            raise RungMissing(
                f"the source of {self._name} cannot be read: {error}", hint="define it in a file"
            ) from None
