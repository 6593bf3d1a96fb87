"""A module's forward as a function of its tensors: the reference of the operator that serves it.

It runs on a copy of the module's structure, so that tracing does not change the module and changes to attributes
are detected and refused.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch
from torch import nn
from torch.utils._pytree import TreeSpec, tree_unflatten

from opwright.binding.functional import computes
from opwright.binding.variants.states import State
from opwright.derivation.backward import imitate_eager
from opwright.errors import ChangesItself, OpwrightError
from opwright.ir.names.identifiers import identifiers
from opwright.nn.copies import Copied
from opwright.nn.given import GivenContainers
from opwright.tracing.interface.aliases import AS_TRACED
from opwright.tracing.outside.plain import is_plain
from opwright.tracing.outside.rules.layers import BOOKKEEPING
from opwright.tracing.outside.unasked import is_a

Forward = Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], Any]


class Written(Protocol):
    """What runs a module as it is written, around its parts if it was opened."""

    def run_as_written(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run its forward."""

    def open(self, refusal: OpwrightError) -> None:
        """Serve the modules inside from now on."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of running the module itself, which has already changed its buffers."""

    returned: Any


class ModuleReference:
    """Takes the tensors of a module, then the leaves of its arguments; returns the result and the changed buffers.

    Args:
        module: What to run a copy of.
        state: The module's state, which tells where its tensors are.
        slots: The slots of the tensors.
        layout: The structure of `(args, kwargs)`.
        mutated: Positions of the tensors that the forward may change.
        forward: Calls the module's original forward.
        is_inside: Whether code as written gets the results; these must lie in memory as in eager.

    Attributes:
        changes_attributes: Whether the forward did, in a trace.
        refusal: Why there are no kernels; None if there are, or none was needed.
    """

    def __init__(
        self,
        module: nn.Module,
        state: State,
        slots: Sequence[int],
        layout: TreeSpec,
        mutated: Sequence[int],
        forward: Forward,
        *,
        is_inside: bool = False,
    ) -> None:
        self.__wrapped__ = written_forward(module)
        self.__name__ = re.sub(r"\W", "_", type(module).__name__.lower(), flags=re.ASCII)
        self.changes_attributes = False
        self.refusal: OpwrightError | None = None
        self._module = weakref.ref(module)
        self._state = state
        self._slots = tuple(slots)
        self._layout = layout
        self._mutated = tuple(mutated)
        self._forward = forward
        self._is_inside = is_inside
        setattr(self, AS_TRACED, partial(_as_traced, self._mutated))  # an attribute, which wrappers keep
        if is_inside:
            imitate_eager(self)

    @property
    def leads_to(self) -> list[Any]:
        """The objects that attributes hold: the copy may share them, and tracing must not change them."""
        module = self._module()
        modules = [] if module is None else [*module.modules()]
        held = [value for each in modules for name, value in vars(each).items() if name not in BOOKKEEPING]
        shared = {id(value): value for value in held if not is_plain(value)}
        return [value for value in shared.values() if not is_a(value, (nn.Module, torch.Tensor, type))]

    def __call__(self, *leaves: Any) -> Any:
        """Run the forward.

        Raises:
            NoKernel: If it changes attributes, or containers that it is given: those of the call would not change.
        """
        count, module, held = len(self._slots), self._module(), self._state.held()
        if module is None or any(slot not in held for slot in self._slots):
            raise ChangesItself("the module has changed meanwhile", hint="change it between calls")
        tensors = [leaf.clone() if p in self._mutated else leaf for p, leaf in enumerate(leaves[:count])]
        copied = Copied(module, [held[slot] for slot in self._slots], tensors)
        args, kwargs = tree_unflatten(leaves[count:], self._layout)
        containers = GivenContainers((args, kwargs))
        returned = self._forward(copied.module, args, kwargs)
        containers.ensure_untouched(returned)
        if not copied.is_unchanged():
            self.changes_attributes = True
            raise ChangesItself("its forward changes attributes of the module", hint="change buffers in place instead")
        return returned, [tensors[position] for position in self._mutated]

    def fallback(self, written: Written, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Ran:
        """Run the module itself."""
        return Ran(written.run_as_written(module, args, kwargs))

    def refused(self, refusal: OpwrightError, written: Written, *given: Any) -> Ran:
        """Run the module, if it can be by parts, because there are no kernels for all of it."""
        self.refusal = refusal.again()
        written.open(refusal)
        return self.fallback(written, *given)


def written_forward(module: nn.Module) -> Any:
    """The forward of a module's original class."""
    return next(vars(kind)["forward"] for kind in type(module).__mro__[1:] if _is_written(kind))


def _is_written(kind: type) -> bool:
    return "forward" in vars(kind) and not kind.__module__.startswith("opwright.nn.")


def tensor_names(dotted: Sequence[str]) -> list[str]:
    """Distinct names for kernels: `0.weight` becomes `layer_0_weight`."""
    plain = [re.sub(r"\W", "_", name, flags=re.ASCII) for name in dotted]
    names = identifiers([f"layer_{name}" if name[:1].isdigit() else name for name in plain])
    return [f"{name}_at_{place}" if names.count(name) > 1 else name for place, name in enumerate(names)]


def _as_traced(
    mutated: Sequence[int], made: Any, leaves: Sequence[Any], is_copy: Callable[[Any, Any], bool]
) -> tuple[Any, list[torch.Tensor | None]]:
    """What a call has returned in a trace, with None for buffers that it left as they were."""
    returned, values = made
    keeps_all = not computes(returned, leaves)  # kernels compute something
    pairs = zip(values, mutated, strict=True)
    return returned, [value if keeps_all or not is_copy(value, leaves[position]) else None for value, position in pairs]
