"""`@opwright.optimizer`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opwright.optim.base import DerivedOptimizer
from opwright.optim.classes import optimizer_class
from opwright.optim.definition import Start, read_definition
from opwright.optim.serving.variants import Variants


def optimizer(
    *,
    state: Sequence[str] | Mapping[str, Start | None] = (),
    sparse: bool = False,
    check: Callable[..., None] | None = None,
    checks_all: bool = False,
    constants: Sequence[str] = (),
    restarts: Sequence[str] = (),
    early: bool = False,
) -> Callable[[Callable[..., Any]], type[DerivedOptimizer]]:
    """Turn the update of one parameter into an optimizer.

    The function takes the parameter, its gradient, its states and the number of the step, which counts from 1, and
    hyper-parameters by name. It returns the new parameter and the new states, in this order, and changes nothing.
    Hyper-parameters that are floats, also in tuples, are given at run time; the kernels of all values are the same,
    unless the function decides by them with `if`. Others, such as truth values and strings, have kernels of their own.

    Args:
        state: The names of the states, in the order of the function's parameters. A mapping gives for each name what
            makes its first value: `(param, **hyper)` to a tensor of any shape, or to None if these hyper-parameters
            need no such state, for which the function gets and returns None; None for zeros like the parameter.
        sparse: Whether sparse gradients are taken; as dense ones, which must give the same results.
        check: Gets the hyper-parameters of each group by name, and raises if they do not go together.
        checks_all: Whether `check` alone refuses; otherwise, negative rates are refused first, as in torch.optim.
        constants: Names of hyper-parameters that kernels are specialised to although they are floats: each value has
            kernels of its own, and operations of PyTorch that take no number at run time can have it.
        restarts: Names of states whose first value sets the number of the step back to 1: when hyper-parameters ask for
            the state later than in the first step, or when it was taken out of `optimizer.state[param]`.
        early: Whether states are made with the optimizer, from its own hyper-parameters, as `torch.optim.Adagrad` does;
            otherwise in the first step, from those of the group.

    Returns:
        A decorator that makes a subclass of `torch.optim.Optimizer`.

    Raises:
        UpdateRefused: If the function takes other parameters than these.
    """

    def make(function: Callable[..., Any]) -> type[DerivedOptimizer]:
        definition = read_definition(
            function, state, sparse=sparse, check=check, checks_all=checks_all, constants=constants, restarts=restarts,
            early=early,
        )  # fmt: skip
        return optimizer_class(DerivedOptimizer, definition, Variants(definition))

    return make
