"""The rung "function": emitted modules with an `autograd.Function`, made runnable."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from opwright.binding.variants.kinds import Key, kind_of
from opwright.ir.expressions.integer import Condition, holds
from opwright.ir.program import size_symbol
from opwright.toolchain.modules import module_of_text
from opwright.tracing.interface.results import Result


@dataclass(frozen=True, slots=True)
class _Module:
    state: Hashable
    kind: Key
    guards: tuple[Condition, ...]
    function: Callable[..., Any]
    result: Result

    def __call__(self, arguments: Sequence[Any]) -> Any:
        made = self.function(*arguments)
        return made if self.result.is_plain else self.result.rebuild(made, arguments)


class FunctionRung:
    """Finds or makes the emitted function for the arguments of a call.

    Args:
        name: The name of the emitted function.
        parameters: The names of the operator's parameters.
        derive: Returns the text of a module, its guards and the structure of its result, for arguments.
        state: Tells what the operator's function reads outside of its arguments now.
    """

    def __init__(
        self,
        name: str,
        parameters: Sequence[str],
        derive: Callable[[Sequence[Any]], tuple[str, tuple[Condition, ...], Result]],
        state: Callable[[], Hashable],
    ) -> None:
        self._name = name
        self._parameters = parameters
        self._derive = derive
        self._state = state
        self._modules: list[_Module] = []

    def __call__(self, arguments: Sequence[Any]) -> Any:
        """Run the emitted function.

        Raises:
            NoKernel: If there is none for these arguments.
        """
        state, kind = self._state(), kind_of(arguments, gradients=False)
        sizes = self._sizes(arguments)
        for module in self._modules:
            if module.state is state and module.kind == kind and all(holds(guard, sizes) for guard in module.guards):
                return module(arguments)
        text, guards, result = self._derive(arguments)
        self._modules.insert(0, _Module(state, kind, guards, self._load(text), result))
        return self._modules[0](arguments)

    def _sizes(self, arguments: Sequence[Any]) -> dict[str, int]:
        return {
            str(size_symbol(name, dimension)): size
            for name, argument in zip(self._parameters, arguments, strict=True)
            if isinstance(argument, torch.Tensor)
            for dimension, size in enumerate(argument.shape)
        }

    def _load(self, text: str) -> Callable[..., Any]:
        file = f"<opwright function {self._name} {len(self._modules)}>"
        return getattr(module_of_text(file, text), self._name)  # type: ignore[no-any-return]
