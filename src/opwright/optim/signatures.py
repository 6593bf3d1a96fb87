"""What `help` and `inspect.signature` say of an optimizer: its hyper-parameters by name, with their defaults."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any

from torch.optim.optimizer import required

from opwright.introspection import signature_of
from opwright.optim.definition import Definition


class OptimizerSignature:
    """The signature of a class of optimizers; that of a subclass with an `__init__` of its own is its own.

    Args:
        made: How the class is made, with `*given` and `**hyper` in place of hyper-parameters.
        definition: The update of one parameter.
    """

    def __init__(self, made: Callable[..., Any], definition: Definition) -> None:
        self._made = made
        self._definition = definition

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        """The signature of a class."""
        if owner.__init__ is not self._made:  # type: ignore[misc]  # it is compared, not called
            raise AttributeError("__signature__")
        return self._signature()

    def _signature(self) -> inspect.Signature:
        _, params, *others = signature_of(self._made).parameters.values()
        options = [each for each in others if each.kind is Parameter.KEYWORD_ONLY]
        defaults = {name: Parameter.empty if v is required else v for name, v in self._definition.hyper.items()}
        is_missing = Parameter.empty in defaults.values()  # then they are known by name alone
        kind = Parameter.KEYWORD_ONLY if is_missing else Parameter.POSITIONAL_OR_KEYWORD
        hyper = [Parameter(name, kind, default=default) for name, default in defaults.items()]
        return inspect.Signature([params, *hyper, *options])
