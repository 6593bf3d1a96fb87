"""Passes that are C++ functions over `torch::Tensor`, as PyTorch's tutorials write them.

A forward function takes the arguments of the operator, in order, and returns its results, then the tensors that it
saves. The names of a backward function's parameters say what it takes: arguments, results, saved tensors and, named
`grad_…`, the cotangents in the order of the results. A parameter `needed`, a std::vector<bool>, says which gradients
are needed. It returns gradients; those that are not needed may be undefined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from opwright.errors import ImplementationRefused, NoKernel, Place, WrongDeclaration, WrongResult
from opwright.handwritten.declaration import Declaration
from opwright.handwritten.expected import Tensors, check_made
from opwright.handwritten.kernels.roles import GRADIENT
from opwright.handwritten.passes import Made, Recorded
from opwright.handwritten.torch_functions.library import TorchFunction, TorchLibrary

NEEDED = "needed"


@dataclass(frozen=True, slots=True)
class Names:
    """The names that a forward and a backward function use.

    Attributes:
        arguments: The operator's arguments.
        results: The operator's results, by their names in the backward function.
        saved: What forward returns after the results.
        gradients: The arguments whose gradients backward returns, in order.
    """

    arguments: tuple[str, ...]
    results: tuple[str, ...]
    saved: tuple[str, ...]
    gradients: tuple[str, ...]


class TorchPasses:
    """A forward function, and a backward function if the author wrote one.

    Args:
        bound: The functions.
        forward: The name of the forward function.
        backward: The name of the backward function, if there is one.
        names: The names of arguments, results, saved tensors and gradients.
        dtypes: The dtypes that they support; empty for any.
    """

    def __init__(
        self,
        library: TorchLibrary,
        forward: str,
        backward: str | None,
        names: Names,
        dtypes: Sequence[torch.dtype],
    ) -> None:
        self._library = library
        self._names = names
        self._dtypes = frozenset(dtypes)
        self._forward_name = forward
        self._backward_name = backward

    @cached_property
    def _forward(self) -> TorchFunction:
        return self._library.function(self._forward_name)

    @cached_property
    def _backward(self) -> TorchFunction | None:
        return self._library.function(self._backward_name) if self._backward_name else None

    @cached_property
    def _kept(self) -> tuple[str, ...]:
        """The results and saved tensors that backward reads."""
        read = self._backward.parameters if self._backward else ()
        return tuple(name for name in (*self._names.results, *self._names.saved) if name in read)

    def forward(self, args: Sequence[Any], expected: Tensors, *, recording: bool) -> Made:
        """Run the forward function; see `Passes`.

        Raises:
            WrongResult: If its results do not match the reference's.
        """
        self._check_arguments(args)
        function = self._forward
        with torch.no_grad():
            returned = function.call(*args)
        made = (returned,) if isinstance(returned, torch.Tensor) else returned
        results = len(expected.described)
        saved = made[results:] if isinstance(made, (tuple, list)) else ()
        if len(saved) != len(self._names.saved):
            raise WrongResult(
                f"{function.name} returned {_count(made)}, but the reference returns {results}"
                + (f"; {len(self._names.saved)} more are saved" if self._names.saved else ""),
                place=function.place,
                hint="name the tensors that it returns after the results in saved=",
            )
        check_made(function.name, function.place, made[:results] if saved else made, expected.described)
        named = dict(zip(self._names.results, made, strict=False)) | dict(zip(self._names.saved, saved, strict=True))
        kept = tuple(named[name] for name in self._kept) if recording else ()
        return Made(tuple(made[:results]), kept)

    def backward(self, recorded: Recorded) -> Mapping[int, torch.Tensor | None]:
        """Run the backward function; see `Passes`.

        Raises:
            WrongResult: If it returns another number of gradients.
        """
        function = self._backward
        if function is None:
            return {}
        cotangents = [
            torch.zeros(sizes, dtype=dtype, device=_device(recorded.args)) if gradient is None else gradient
            for gradient, (sizes, dtype) in zip(recorded.cotangents, recorded.outputs, strict=True)
        ]
        values = dict(zip(self._names.arguments, recorded.args, strict=True))
        values |= dict(zip(self._kept, recorded.kept, strict=True))
        values[NEEDED] = [self._names.arguments.index(name) in recorded.wanted for name in self._names.gradients]
        flowing = iter(cotangents)
        given = [values[name] if name in values else next(flowing) for name in function.parameters]
        returned = function.call(*given)
        gradients = (returned,) if isinstance(returned, torch.Tensor) else tuple(returned)
        if len(gradients) != len(self._names.gradients):
            raise WrongResult(
                f"{function.name} returned {len(gradients)} gradients; those of "
                f"{', '.join(self._names.gradients)} were expected",
                place=function.place,
                hint="name the arguments whose gradients it returns in gradients=, in order",
            )
        return self._checked(function, dict(zip(self._names.gradients, gradients, strict=True)), recorded)

    def examine(self) -> None:
        """Look for a compiler."""
        self._library.examine()

    def count(self) -> int:
        """The number of instances: one serves all dtypes."""
        return 1

    def source(self) -> str:
        """The author's files."""
        return self._library.source()

    def _check_arguments(self, args: Sequence[Any]) -> None:
        for arg in args:
            if isinstance(arg, torch.Tensor) and arg.device.type != "cpu":
                raise NoKernel(
                    f"{self._forward_name} takes tensors on the CPU only", hint="move them there with .to('cpu')"
                )
            if isinstance(arg, torch.Tensor) and self._dtypes and arg.dtype not in self._dtypes:
                dtype = str(arg.dtype).removeprefix("torch.")
                raise NoKernel(
                    f"{self._forward_name} is not written for {dtype}", hint="add it to dtypes= of implement"
                )

    def _checked(
        self, function: TorchFunction, found: Mapping[str, torch.Tensor | None], recorded: Recorded
    ) -> Mapping[int, torch.Tensor | None]:
        """The gradients by position, each of its argument's sizes; undefined ones are derived."""
        gradients: dict[int, torch.Tensor | None] = {}
        for name, gradient in found.items():
            position = self._names.arguments.index(name)
            of = recorded.args[position]
            if gradient is None or not isinstance(of, torch.Tensor):
                continue
            what = f"{function.name}, for '{name}',"
            check_made(what, function.place, (gradient,), ((tuple(of.shape), of.dtype),))
            gradients[position] = gradient
        return gradients


def check_parameters(function: str, declaration: Declaration, arguments: Sequence[str]) -> None:
    """Demand that a forward function takes as many arguments as its operator, and returns tensors.

    Raises:
        WrongDeclaration: If the number of arguments differs, or it does not return tensors.
    """
    parameters = [parameter.name for parameter in declaration.parameters]
    _check_return(function, declaration)
    if len(parameters) != len(arguments):
        raise WrongDeclaration(
            f"{function} takes {len(parameters)} arguments ({', '.join(parameters)}), but the operator takes "
            f"{len(arguments)} ({', '.join(arguments)})",
            place=declaration.place,
        )


def check_backward_parameters(function: str, declaration: Declaration, names: Names, outputs: int | None) -> None:
    """Demand that every parameter of a backward function has a known name, and that it returns tensors.

    Raises:
        WrongDeclaration: If one does not, or the number of cotangents is not the number of results.
    """
    _check_return(function, declaration)
    place = declaration.place
    known = {*names.arguments, *names.results, *names.saved, NEEDED}
    others = [parameter.name for parameter in declaration.parameters if parameter.name not in known]
    unknown = [name for name in others if not name.startswith(GRADIENT)]
    if unknown:
        raise WrongDeclaration(
            f"{function} takes '{unknown[0]}', which a backward pass does not have",
            place=place,
            hint=f"it has {', '.join(sorted(known))}, and cotangents, named {GRADIENT}…; results= and saved= name more",
        )
    if outputs is not None and len(others) != outputs:
        raise WrongDeclaration(
            f"{function} takes {len(others)} cotangents ({', '.join(others)}), but there are {outputs} results",
            place=place,
            hint=f"name one parameter {GRADIENT}… for each result",
        )


def _check_return(function: str, declaration: Declaration) -> None:
    if "Tensor" not in declaration.returns:
        raise WrongDeclaration(
            f"{function} returns {declaration.returns}, but a function over torch::Tensor returns tensors",
            place=declaration.place,
            hint="return torch::Tensor, std::vector<torch::Tensor> or std::tuple<torch::Tensor, ...>",
        )


def check_names(names: Names, operator: str, place: Place) -> None:
    """Demand that `gradients=` names arguments.

    Raises:
        ImplementationRefused: If it names anything else.
    """
    for name in names.gradients:
        if name not in names.arguments:
            raise ImplementationRefused(
                f"gradients= names '{name}', which is not an argument of {operator}",
                place=place,
                hint=f"its arguments are {', '.join(names.arguments)}",
            )


def _count(made: Any) -> str:
    return f"{len(made)} tensors" if isinstance(made, (tuple, list)) else f"a {type(made).__name__}"


def _device(args: Sequence[Any]) -> torch.device:
    return next(arg.device for arg in args if isinstance(arg, torch.Tensor))
