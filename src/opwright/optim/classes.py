"""optimizer_class: the update of one parameter → a class of optimizers."""

from __future__ import annotations

from typing import TypeVar

from opwright.optim.definition import Definition
from opwright.optim.serving.kernels import Kernels
from opwright.optim.signatures import OptimizerSignature
from opwright.optim.stepping import SteppingOptimizer

Base = TypeVar("Base", bound=SteppingOptimizer)


def optimizer_class(base: type[Base], definition: Definition, variants: Kernels) -> type[Base]:
    """A class with the name of a definition.

    Args:
        base: Its base.
        definition: The update of one parameter.
        variants: The kernels of the definition.
    """
    function = definition.function
    about = {
        "__module__": function.__module__,
        "__qualname__": function.__qualname__,
        "__doc__": function.__doc__,
        "__signature__": OptimizerSignature(base.__init__, definition),
        "definition": definition,
        "variants": variants,
    }
    return type(function.__name__, (base,), about)
