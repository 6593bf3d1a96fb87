"""A definition: the update of one parameter as a function, taken apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.optim.optimizer import required

from opwright.errors import UpdateRefused
from opwright.introspection import signature_of
from opwright.tracing.interface.place import place_of

Start = Callable[..., Any]
"""Makes the first value of a state: `(param, **hyper)` to a tensor, or None if there is no such state."""

_FIRST = ("param", "grad")
STEP = "step"
FACTOR, MASTER = "grad_factor", "master"
RESERVED = {
    FACTOR: "the factor of clipped and scaled gradients has that name",
    MASTER: "the float32 copy of a parameter that master=True keeps has that name",
    "params": "every optimizer takes its parameters by that name",
    **dict.fromkeys(
        ("maximize", "max_grad_norm", "state_dtype", "rounding", "free_grads"),
        "every optimizer has an option of that name, which does what it says",
    ),
}
"""Names that states and hyper-parameters cannot have, and why."""


@dataclass(frozen=True, slots=True)
class Definition:
    """The update of one parameter.

    Attributes:
        function: `(param, grad, *states, step, **hyper)` to `(param, *states)`.
        states: Names of the states, in the order of the function's parameters.
        starts: Their first values; zeros like the parameter if there is none.
        hyper: The hyper-parameters with their defaults; `torch.optim.optimizer.required` for none.
        sparse: Whether sparse gradients are taken, as dense ones.
        check: Raises if hyper-parameters do not go together.
        checks_all: Whether negative rates are refused by `check` alone.
        constants: Hyper-parameters whose values kernels are specialised to, although they are floats.
        restarts: States whose first value comes with step 1, also when other steps were taken before.
        early: Whether states are made with the optimizer, from its defaults, and not in the first step.
    """

    function: Callable[..., Any]
    states: tuple[str, ...]
    starts: Mapping[str, Start]
    hyper: Mapping[str, Any]
    sparse: bool = False
    check: Callable[..., None] | None = None
    checks_all: bool = False
    constants: frozenset[str] = frozenset()
    restarts: frozenset[str] = frozenset()
    early: bool = False

    @property
    def name(self) -> str:
        """The name of the optimizer."""
        return self.function.__name__

    @property
    def leads_to(self) -> Callable[..., Any]:
        """What a trace that reaches it watches: what the function reaches was made outside of the update."""
        return self.function

    def start(self, state: str, param: torch.Tensor, hyper: Mapping[str, Any]) -> torch.Tensor | None:
        """The first value of a state of a parameter, in the parameter's layout."""
        if (make := self.starts.get(state)) is None:
            return torch.zeros_like(param, memory_format=torch.preserve_format)
        made = make(param.detach(), **hyper)
        if not (made is None or isinstance(made, torch.Tensor)):
            raise UpdateRefused(
                f"the first value of the state '{state}' is {type(made).__name__}, not a tensor",
                place=place_of(make),
                hint="return a tensor, or None for a state that these hyper-parameters do not need",
            )
        return made


def read_definition(
    function: Callable[..., Any],
    state: Sequence[str] | Mapping[str, Start | None],
    *,
    sparse: bool,
    check: Callable[..., None] | None = None,
    checks_all: bool = False,
    constants: Sequence[str] = (),
    restarts: Sequence[str] = (),
    early: bool = False,
) -> Definition:
    """Read the signature of an update.

    Args:
        function: `(param, grad, *states, step, *, hyper=default, …)`.
        state: The names of its states, perhaps with what makes their first values.
        sparse: Whether sparse gradients are taken.
        check: Raises if hyper-parameters do not go together.
        checks_all: Whether negative rates are refused by `check` alone.
        constants: Hyper-parameters whose values kernels are specialised to.
        restarts: States whose first value comes with step 1.
        early: Whether states are made with the optimizer.

    Raises:
        UpdateRefused: If the parameters are others than these.
    """
    place = place_of(function)
    if isinstance(state, str):
        raise UpdateRefused(
            f"state={state!r} is a string, not a tuple of names", place=place, hint=f"write state=({state!r},)"
        )
    states = tuple(state)
    parameters = signature_of(function).parameters.values()
    positional = tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)
    wanted = (*_FIRST, *states, STEP)
    if positional != wanted:
        raise UpdateRefused(
            f"{function.__name__} takes ({', '.join(positional)}), and its states are ({', '.join(states)})",
            place=place,
            hint=f"write def {function.__name__}({', '.join(wanted)}, *, …)",
        )
    if others := [p.name for p in parameters if p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]:
        raise UpdateRefused(
            f"{function.__name__} takes '{others[0]}', which has no name in a parameter group",
            place=place,
            hint="give every hyper-parameter a name, after a *",
        )
    if taken := [name for name in (*states, *(p.name for p in parameters)) if name in RESERVED]:
        raise UpdateRefused(
            f"{function.__name__} takes '{taken[0]}', and {RESERVED[taken[0]]}",
            place=place,
            hint=f"leave '{taken[0]}' out, or call it otherwise",
        )
    starts = {name: make for name, make in state.items() if make} if isinstance(state, Mapping) else {}
    hyper = {p.name: required if p.default is p.empty else p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    if unknown := [name for name in constants if name not in hyper]:
        raise UpdateRefused(
            f"{function.__name__} has no hyper-parameter '{unknown[0]}', which constants= names",
            place=place,
            hint=f"its hyper-parameters are ({', '.join(hyper)})",
        )
    if unknown := [name for name in restarts if name not in states]:
        raise UpdateRefused(
            f"{function.__name__} has no state '{unknown[0]}', which restarts= names",
            place=place,
            hint=f"its states are ({', '.join(states)})",
        )
    return Definition(
        function, states, starts, hyper, sparse, check, checks_all, frozenset(constants), frozenset(restarts),
        early,
    )  # fmt: skip
