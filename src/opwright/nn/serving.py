"""Serve a module: one operator for each description of the module and each structure of arguments."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as torch_module
from torch.nn.utils import parametrize
from torch.utils._pytree import TreeSpec, tree_flatten

from opwright.api.operator import Operator
from opwright.binding.fallbacks import Fallbacks
from opwright.binding.own_errors import is_wanted, runs_reference
from opwright.binding.serving.last_rung import RemembersRung
from opwright.binding.variants.kinds import Key, call_of, is_among
from opwright.derivation.backward import make_static
from opwright.derivation.save_policy import SavePolicy
from opwright.errors import NoKernel, OpwrightError, UndeclaredMutation
from opwright.ir.names.identifiers import identifiers
from opwright.nn.description import Described
from opwright.nn.reference import Forward, ModuleReference, Ran
from opwright.settings import Settings
from opwright.tracing.interface.flatten import Leaves
from opwright.tracing.interface.memory import memory_of
from opwright.tracing.interface.signature import Kind, Parameter, Signature
from opwright.tracing.recording.faults import fault_of

MOST_OPERATORS = 32
_CHANGES = "its forward changes a parameter or an argument"
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class Serving(RemembersRung):
    """Serves the calls of one module.

    Args:
        forward: Calls the module's original forward.
        save: What the backward pass may keep.
    """

    def __init__(self, forward: Forward, save: SavePolicy) -> None:
        super().__init__()
        self._save = save
        self._forward = forward
        self._operators: dict[Hashable, tuple[Operator, tuple[int, ...]] | None] = {}
        self._left: set[Key] = set()
        self._fallbacks: Fallbacks | None = None

    def serve(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the forward by an operator, or fall back to the original."""
        if self._left and not kwargs and is_among(self._left, (module.training, *args)):
            return self.run_as_written(module, args, kwargs)
        try:
            refuse_listeners(module)
            return self._serve(module, args, kwargs)
        except Exception as error:  # raised before or during a derivation: nothing has run yet
            if is_wanted(error):
                raise
            refusal = fault_of(error)
        self._tell(module, refusal)
        return self.run_as_written(module, args, kwargs)

    @runs_reference
    def run_as_written(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the module's original forward."""
        self.last_rung = "composed"
        return self._forward(module, args, kwargs)

    def _serve(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        described = Described(module)
        members, layout = tree_flatten((args, kwargs))
        kind = (described.key, layout, tuple([isinstance(member, torch.Tensor) for member in members]))
        leaves = [*described.tensors, *members]
        if kind not in self._operators:
            if len(self._operators) >= MOST_OPERATORS:
                raise NoKernel(
                    f"there are already {MOST_OPERATORS} operators for its attributes and arguments",
                    hint="keep what changes from call to call in buffers, or pass it as a tensor",
                )
            self._operators[kind] = self._make(module, described, layout, members, ())
        found = self._operators[kind]
        if found is None:
            return self.run_as_written(module, args, kwargs)
        try:
            return self._call(*found, leaves, (module, args, kwargs))
        except UndeclaredMutation as refusal:
            self._operators[kind] = None
            if found[1] or not described.buffers:
                raise NoKernel(_CHANGES, hint="change a copy, or a buffer") from refusal
        found = self._operators[kind] = self._make(module, described, layout, members, described.buffers)
        try:
            return self._call(*found, leaves, (module, args, kwargs))
        except UndeclaredMutation as refusal:
            self._operators[kind] = None
            raise NoKernel(_CHANGES, hint="change a copy, or a buffer") from refusal

    def _call(
        self,
        operator: Operator,
        mutated: Sequence[int],
        leaves: list[Any],
        given: tuple[nn.Module, tuple[Any, ...], dict[str, Any]],
    ) -> Any:
        if mutated:
            refuse_shared(leaves, mutated)
        handed = list(leaves)
        if torch.is_grad_enabled():
            for position in mutated:  # the backward pass reads the old values
                handed[position] = leaves[position].clone()
        arguments = Leaves(handed)
        arguments.given = given
        made = operator.server.serve(arguments, {})
        self.last_rung = operator.last_rung
        if isinstance(made, Ran):
            if not given[2] and not given[0]._modules and operator.server.leaves(arguments):
                self._left.add(call_of((given[0].training, *given[1])))
            return made.returned
        returned, values = made
        for position, value in zip(mutated, values, strict=True):
            leaves[position].copy_(value)
        return returned

    def _make(
        self, module: nn.Module, described: Described, layout: TreeSpec, members: list[Any], mutated: Sequence[int]
    ) -> tuple[Operator, tuple[int, ...]]:
        parameters = [Parameter(name, Kind.TENSOR, False) for name in tensor_names(described.names)]
        for place, member in enumerate(members):
            kind = Kind.TENSOR if isinstance(member, torch.Tensor) else Kind.CONSTANT
            parameters.append(Parameter(f"argument_{place}", kind, False))
        reference = ModuleReference(module, described, layout, mutated, self._forward)
        make_static(reference, [parameter.name for parameter in parameters[: len(described.tensors)]])
        signature = Signature(tuple(parameters), None, structured=True)
        return Operator(reference, save=self._save, signature=signature, identity=lambda _: None), tuple(mutated)

    def _tell(self, module: nn.Module, refusal: OpwrightError) -> None:
        """Warn why the module's own forward runs."""
        if self._fallbacks is None:
            self._fallbacks = Fallbacks(type(module).__name__, Settings.from_environment())
        self._fallbacks.tell(refusal)


def tensor_names(dotted: Sequence[str]) -> list[str]:
    """Distinct names for kernels: `0.weight` becomes `layer_0_weight`."""
    plain = [re.sub(r"\W", "_", name, flags=re.ASCII) for name in dotted]
    names = identifiers([f"layer_{name}" if name[0].isdigit() else name for name in plain])
    return [f"{name}_at_{place}" if names.count(name) > 1 else name for place, name in enumerate(names)]


def refuse_listeners(module: nn.Module) -> None:
    """Refuse kernels if inner modules have hooks, which must run.

    Raises:
        NoKernel: If a hook would not run, or a parametrization is cached.
    """
    if torch_module._has_any_global_hook():
        raise NoKernel(
            "there are global module hooks, which must run", hint="remove them with the .remove() of their handles"
        )
    if parametrize._cache_enabled:
        raise NoKernel("parametrized tensors are cached", hint="call it outside of parametrize.cached()")
    for name, inner in module.named_modules():
        if inner is not module and any(vars(inner).get(hooks) for hooks in _HOOKS):
            raise NoKernel(f"its module '{name}' has hooks, which must run", hint="put hooks on the outermost module")


def refuse_shared(leaves: Sequence[Any], mutated: Sequence[int]) -> None:
    """Refuse kernels if a mutated tensor shares memory with another.

    Raises:
        NoKernel: If it does, or if torch does not allow the change.
    """
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided]
    memories = [memory_of(tensor) for tensor in tensors]
    for position in mutated:
        target = leaves[position]
        if target.layout != torch.strided or memories.count(memory_of(target)) > 1:
            raise NoKernel("a buffer that it changes shares memory with another tensor", hint="register its .clone()")
        if torch.is_grad_enabled() and target.requires_grad:
            raise NoKernel("a buffer that it changes requires a gradient", hint="call .requires_grad_(False) on it")
