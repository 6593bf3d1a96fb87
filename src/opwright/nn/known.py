"""What is known of a module in one state: its tensors, why it serves itself, and the operators for its calls."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import nn
from torch.nn.utils import parametrize

from opwright.api.operator import Operator
from opwright.binding.variants.states import State
from opwright.errors import NoKernel, OpwrightError

_MOST_TENSORS = 64


@dataclass(slots=True)
class Call:
    """The calls of one structure, in one state.

    Attributes:
        operator: What serves them; None if the module does.
        mutated: Positions of the tensors that it changes.
        structure: That of the arguments, for C++; None if that cannot take them apart.
        left: The calls that are left to the module, in C++.
        refusal: Why no operator serves them, if it is not the operator itself that says so.
    """

    operator: Operator | None
    mutated: tuple[int, ...] = ()
    structure: Any = None
    left: Any = None
    refusal: OpwrightError | None = None


@dataclass(slots=True)
class Known:
    """What is known of a state of the module.

    Attributes:
        slots: The slots of its tensors.
        names: Their names.
        buffers: Positions of those that are no parameters.
        refusal: Why the module serves all calls; None if operators may.
        calls: By structure of the arguments.
    """

    slots: tuple[int, ...]
    names: tuple[str, ...]
    buffers: tuple[int, ...]
    refusal: NoKernel | None
    calls: dict[Hashable, Call] = field(default_factory=dict)


def known_of(state: State) -> Known:
    """What can be said of a state before any call."""
    layers = state.reads.layers
    assert layers is not None
    slots, names, are_parameters = zip(*layers.tensors, strict=True) if layers.tensors else ((), (), ())
    buffers = tuple(position for position, is_parameter in enumerate(are_parameters) if not is_parameter)
    return Known(slots, names, buffers, _refusal(layers.hooked, len(slots)))


def _refusal(hooked: Sequence[str], tensors: int) -> NoKernel | None:
    """Why a module runs as written: hooks inside of it must run, say, or it has too many tensors for a kernel."""
    if nn.modules.module._has_any_global_hook():
        return NoKernel(
            "there are global module hooks, which must run", hint="remove them with the .remove() of their handles"
        )
    if parametrize._cache_enabled:
        return NoKernel("parametrized tensors are cached", hint="call it outside of parametrize.cached()")
    if hooked:
        return NoKernel(f"its module '{hooked[0]}' has hooks, which must run", hint="put hooks on the outermost module")
    if tensors > _MOST_TENSORS:
        return NoKernel(
            f"it has {tensors} tensors, and one program of more than {_MOST_TENSORS} takes long to build",
            hint="serve the modules inside of it",
        )
    return None
