"""Serving a mutating operator: a functional operator computes the new values, which are copied into the arguments.

The functional operator and its gradients are derived like any other; autograd records the copies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch.utils._pytree import tree_map_only

from opwright.binding.autograd.recomputation import take_made
from opwright.binding.environment import is_quiet
from opwright.binding.fallbacks import Fallbacks
from opwright.binding.functional import Done, write_back
from opwright.binding.own_errors import is_for_the_caller, runs_reference
from opwright.binding.rungs import RungName
from opwright.binding.serving.hot_path import HotPath
from opwright.binding.serving.inside import RunsInside, insides
from opwright.binding.serving.listening import is_heard, tell
from opwright.binding.serving.old_values import copied_as_it_lies
from opwright.binding.serving.server import Server
from opwright.errors import WrapperRefused
from opwright.tracing.interface.flatten import Leaves
from opwright.tracing.interface.memory import may_overlap_itself, memory_of
from opwright.tracing.interface.signature import Signature
from opwright.tracing.recording.faults import fault_of

_DEVICES = ("cpu", "cuda")
_CONTAINERS = (list, dict, tuple)


class _ServesContainers(Protocol):
    last_rung: RungName | None

    def serve(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, pinned: bool = False) -> Any: ...


class MutatingServer(HotPath):
    """Serves the calls of one operator.

    Args:
        reference: The function as written, taking every argument by position, as they came.
        signature: Its parameters.
        mutated: Positions of those that it changes.
        functional: Returns the server of the functional operator.
        fallbacks: Warned why the reference serves a call.
        in_containers: Serves calls in which an argument that it changes is a list or a dict, where no annotation says.
    """

    def __init__(
        self,
        reference: Callable[..., Any],
        signature: Signature,
        mutated: Sequence[int],
        functional: Callable[[], Server],
        fallbacks: Fallbacks,
        in_containers: _ServesContainers | None = None,
    ) -> None:
        super().__init__(signature, mutated)
        self._reference = reference
        self._mutated = mutated
        self._functional = functional
        self._fallbacks = fallbacks
        self._in_containers = in_containers

    @property
    def changes_any(self) -> bool:
        """Whether it changes an argument at all."""
        return bool(self._mutated)

    def serve(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, pinned: bool = False) -> Any:
        """Serve a call; a pinned one raises instead of running the reference."""
        result = self._play(args, kwargs)
        if result is not NotImplemented:
            return result
        if is_heard():
            return tell(self._fallbacks.name, lambda *a, **k: self.serve(a, k, pinned=pinned), args, kwargs)
        given = self._signature.bind(args, kwargs)
        if self._in_containers and any(isinstance(given[position], _CONTAINERS) for position in self._mutated):
            result = self._in_containers.serve(args, kwargs, pinned=pinned)
            self.last_rung = self._in_containers.last_rung
            return result
        try:
            made = self._made(given, pinned=pinned)
        except Exception as error:  # nothing has changed yet
            if (before := take_made(error)) is not None:  # a checkpoint has seen enough
                self._update(given, *before)
                raise
            if pinned or is_for_the_caller(error):
                raise
            fault = fault_of(error)
        else:
            return made.returned if isinstance(made, Done) else self._update(given, *made)
        result = self.serve_by_reference(given)
        self._fallbacks.tell(fault)
        return result

    def _made(self, given: tuple[Any, ...], *, pinned: bool) -> Any:
        """The result of the functional operator, or of the reference after it changed the arguments."""
        if not is_quiet() or not self._may_copy(given):
            return Done(self.serve_by_reference(given))
        server = self._functional()
        kept = self._kept(given) if torch.is_grad_enabled() else given
        arguments = Leaves(kept)
        arguments.given = given.given if isinstance(given, Leaves) else given
        made = server.serve(arguments, {}, pinned=pinned)
        self._keep_up(server, None)
        self.last_rung = server.last_rung
        if isinstance(made, Done):
            return made
        self._ensure_new_values(made)
        copied = {id(kept[position]): given[position] for position in self._mutated if kept is not given}
        return _in_place_of(copied, made[0]), made[1]

    def _ensure_new_values(self, made: Any) -> None:
        """Whatever a rule for wrappers returned: a function for this operator is the author's own."""
        if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[1], (tuple, list))):
            found = type(made).__name__
        elif len(made[1]) != len(self._mutated):
            found = f"{len(made[1])} values"
        else:
            return
        raise WrapperRefused(
            f"a rule for {self._fallbacks.name}, which changes {len(self._mutated)} of its arguments, returned {found}",
            hint="return the operator's result and a list of the new values: return result, [new]",
        )

    def serve_below_autograd(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Serve a call that records no gradients."""
        with torch.no_grad():
            return self.serve(args, kwargs)

    @runs_reference
    def serve_by_reference(self, args: tuple[Any, ...]) -> Any:
        """Run the function as written."""
        self.last_rung = "composed"
        return self._reference(*(args.given if isinstance(args, Leaves) else args))

    def _kept(self, given: Sequence[Any]) -> list[Any]:
        """The arguments, with copies of mutated ones: the backward pass reads their old values."""
        return [copied_as_it_lies(argument) if p in self._mutated else argument for p, argument in enumerate(given)]

    def _update(self, given: Sequence[Any], returned: Any, values: Sequence[torch.Tensor | None]) -> Any:
        write_back(given, self._mutated, values)
        pairs = zip(self._mutated, values, strict=True)
        targets = {id(value): given[position] for position, value in pairs if value is not None}
        return _in_place_of(targets, returned)

    def _may_copy(self, given: Sequence[Any]) -> bool:
        """Whether mutated arguments are tensors without aliases, plain or around one, that torch allows to change."""
        tensors = [argument for argument in given if isinstance(argument, torch.Tensor)]
        recording = torch.is_grad_enabled()
        for position in self._mutated:
            target = given[position]
            if not _is_plain_inside(target) or target.device.type not in _DEVICES:
                return False
            if (recording and target.requires_grad and target.is_leaf) or may_overlap_itself(target):
                return False
            memories = _memories(target)
            if sum(not memories.isdisjoint(_memories(other)) for other in tensors) > 1:
                return False
        return True


def _in_place_of(others: Mapping[int, torch.Tensor], returned: Any) -> Any:
    """What is returned, with some tensors in place of others, which are told by `id`."""
    return tree_map_only(torch.Tensor, lambda tensor: others.get(id(tensor), tensor), returned) if others else returned


def _is_plain_inside(target: Any) -> bool:
    """Whether it is a plain tensor, or a wrapper around a single one."""
    if isinstance(target, RunsInside):
        held = insides(target)
        return len(held) == 1 and _is_plain_inside(held[0])
    return type(target) is torch.Tensor and target.layout == torch.strided


def _memories(tensor: torch.Tensor) -> set[int]:
    """The memory of a tensor, and of those that it holds."""
    if isinstance(tensor, RunsInside):
        return {memory for inside in insides(tensor) for memory in _memories(inside)}
    return {memory_of(tensor)} if tensor.layout == torch.strided else set()
