"""Which modules inside of a served one are served, each as a whole: the options `depth=` and `parts=`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from opwright.derivation.saving.save_policy import SavePolicy, read_policy
from opwright.errors import PartsRefused

Choose = Callable[[str, nn.Module], bool]


@dataclass(frozen=True, slots=True)
class Cut:
    """How one module of a tree is served.

    Attributes:
        save: What the backward pass may keep.
        depth: How many levels below it modules are served as a whole; None for the largest that can be.
        parts: Chooses these modules instead, by their dotted names.
        name: The name of the module in the tree.
        is_chosen: Whether `parts` chose it.
        is_inside: Whether code that runs as written gets its results, which then lie in memory as in eager.
        is_asked_for: Whether the user asked that it is served as a whole, and so hears why it is not.
    """

    save: SavePolicy
    depth: int | None = None
    parts: Choose | None = None
    name: str = ""
    is_chosen: bool = False
    is_inside: bool = False
    is_asked_for: bool = True

    @property
    def asked(self) -> tuple[Any, ...]:
        """What the user wrote."""
        return self.save, self.depth, self.parts

    @property
    def is_free(self) -> bool:
        """Whether the user left it open which modules are served as a whole."""
        return self.depth is None and self.parts is None

    def tries(self, module: nn.Module) -> bool:
        """Whether the module is served as a whole if it can be."""
        if self.parts is not None:
            return self.is_chosen
        return has_forward(module) and (not self.depth or not calls_others(module))

    def opens(self, module: nn.Module) -> bool:
        """Whether the modules inside are served if it is not."""
        return self.depth != 0 and not self.is_chosen and calls_others(module)

    def inside(self, name: str, module: nn.Module) -> Cut:
        """How a module inside is served; a container that cannot be called is no level of its own."""
        asked = self.depth is not None or self.parts is not None
        depth = self.depth and self.depth - has_forward(module)
        name = f"{self.name}.{name}".lstrip(".")
        return replace(self, depth=depth, name=name, is_inside=True, is_asked_for=asked).of(module)

    def of(self, module: nn.Module) -> Cut:
        """The same, when `parts` was asked about the module.

        Raises:
            PartsRefused: If it gave no bool.
        """
        chosen = self.parts is not None and self.parts(self.name, module)
        if not isinstance(chosen, bool):
            raise PartsRefused(
                f"parts= gave {chosen!r} for the module '{self.name}'", hint="give True for modules that are served"
            )
        return replace(self, is_chosen=chosen)


def read_cut(save: SavePolicy, depth: Any, parts: Any) -> Cut:
    """The options of `opwright.module`.

    Raises:
        SaveRefused: If `save` is no policy.
        PartsRefused: If `depth` or `parts` cannot be used, or both are given.
    """
    if depth is not None and (type(depth) is not int or depth < 0):
        raise PartsRefused(
            f"depth={depth!r} is no number of levels", hint="write 0 for the whole module, 1 for its children, …"
        )
    if parts is not None and not callable(parts):
        raise PartsRefused(f"parts={parts!r} cannot be called", hint="pass a function of a name and a module")
    if parts is not None and depth is not None:
        raise PartsRefused("depth= and parts= both choose the modules to be served", hint="leave one of them out")
    return Cut(read_policy(save, None), depth, parts)


def has_forward(module: nn.Module) -> bool:
    """Whether a module can be called; lists and dicts of modules cannot."""
    return getattr(type(module), "forward", None) not in (None, nn.Module.forward)


def calls_others(module: nn.Module) -> bool:
    """Whether there are modules inside that can be called, whatever they answer when asked whether they are true."""
    return any(has_forward(inner) for inner in module.modules() if inner is not module)
