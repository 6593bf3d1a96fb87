"""What serves a module and those inside of it, as text: a line for each."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import nn

from opwright.explain.layout import MARGIN, WIDTH
from opwright.nn.parts.cut import has_forward
from opwright.nn.parts.opened import Opened
from opwright.nn.parts.part import SERVING, Part, has_hooks, itself, why_not

if TYPE_CHECKING:
    from opwright.nn.serving import Serving

_NOT_CALLED = "not called yet"
_WRITTEN = "as written"
_WIDEST = 48


@dataclass(frozen=True, slots=True)
class Line:
    """A module, and what serves it."""

    level: int
    label: str
    text: str


def tree(module: nn.Module, serving: Serving) -> str:
    """Write a line for a served module and each module inside, with what serves it as it is now."""
    lines = [*_served("", module, serving, 0)]
    labels = [MARGIN * line.level + line.label for line in lines]
    column = min(max(map(len, labels)), _WIDEST)
    return "\n".join(_wrapped(label, line.text, column) for label, line in zip(labels, lines, strict=True))


def _wrapped(label: str, text: str, column: int) -> str:
    first, then = f"{label:<{column}}  ", " " * (column + 2)
    wrapped = textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=then, break_long_words=False)
    return "\n".join(wrapped) or label


def _served(name: str, module: nn.Module, serving: Serving, level: int) -> Iterator[Line]:
    text, opened = serving.told(module), serving.opened
    yield Line(level, _label(name, module), text)
    if isinstance(opened, Opened) and text.startswith("its parts"):
        yield from _parts(opened, [*module._modules], level + 1)
    else:
        inner = text if text == _NOT_CALLED else _WRITTEN if text.startswith(_WRITTEN) else f"in {name or 'it'}"
        yield from _inside(module, inner, level + 1)


def _parts(opened: Opened, names: list[str], level: int) -> Iterator[Line]:
    listed = opened.stand_in._modules
    halves = opened.halves()
    if not halves:
        for name, part in zip(names, listed.values(), strict=True):
            yield from _part(name, part, level)
        yield from _methods(opened.stand_in, level)
        return
    middle = len(names) // 2
    for half, inside in zip(halves, (names[:middle], names[middle:]), strict=True):
        if len(inside) == 1:
            yield from _part(inside[0], half, level)
        else:
            yield from _row(half, inside, level)


def _methods(part: Part, level: int) -> Iterator[Line]:
    """The methods of a module whose forward runs as written, as far as it has called them."""
    for name, served in part._opwright_inside.methods.items():
        if served.get is not None:
            method = served.get()
            yield Line(level, f"{name}()", method._served().told(method))


def _row(forward: Any, names: list[str], level: int) -> Iterator[Line]:
    """Modules in a row that are served as a whole, or the halves of that."""
    row = forward.__self__
    serving = row._served()
    text = serving.told(row)
    if text.startswith("its parts"):
        yield from _parts(serving.opened, names, level)
        return
    called = f"{names[0]} to {names[-1]}"
    yield Line(level, f"{called}, in a row", text)
    for name, module in zip(names, row._modules.values(), strict=True):
        yield Line(level + 1, _label(name, module), f"in {called}")
        yield from _inside(module, f"in {called}", level + 2)


def _part(name: str, part: Any, level: int) -> Iterator[Line]:
    if part is None:
        return
    module = itself(part)
    if hasattr(module, SERVING):
        yield from _served(name, module, module._served(), level)
        return
    if not isinstance(part, Part) or has_hooks(module):
        reason = why_not(module) or ("it has hooks, which must run" if has_hooks(module) else "")
        yield Line(level, _label(name, module), f"{_WRITTEN}: {reason}".removesuffix(": "))
        yield from _inside(module, _WRITTEN, level + 1)
        return
    get = part._opwright_inside.served.get
    if get is not None:
        yield from _served(name, module, get()._served(), level)
        return
    yield Line(level, _label(name, module), _NOT_CALLED if has_forward(module) else "")
    for inner, child in part._modules.items():
        yield from _part(inner, child, level + 1)


def _inside(module: nn.Module, text: str, level: int) -> Iterator[Line]:
    for name, child in module._modules.items():
        if child is not None:
            yield Line(level, _label(name, child), text)
            yield from _inside(child, text, level + 1)


def _label(name: str, module: nn.Module) -> str:
    return f"{name} {module._get_name()}".lstrip()
