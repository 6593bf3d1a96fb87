"""Entry: how a type serves one spelling of a function, decided once and kept.

`call` takes the arguments of a call without keywords, `named` those of one with them. A spelling whose arguments are
those of its handler goes straight to it; all others are bound first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch

from opwright.tensors.like.binding import NotTaken, Recipe, form_of, recipe_for
from opwright.tensors.like.handler import Handler, is_ambiguous
from opwright.tensors.like.operators import break_graph
from opwright.tensors.like.writing import write_into, write_out
from opwright.tensors.spellings.overloads import overloads, takes_many
from opwright.tensors.spellings.table import Spelling

How = Literal["handled", "by rule", "fallback"]
Fallback = Callable[[Spelling, Sequence[Any], dict[str, Any]], Any]

_MOST_RECIPES = 256  # forms of calls, which hold types
_NN = "torch.nn.functional."


class Entry:
    """How one spelling is served.

    Attributes:
        call: Serves a call by its positional arguments, and by those of `keywords`.
        keywords: The names that `call` may be given.
        named: Serves a call by its positional arguments and keywords, given as a tuple and a dict.
        how: "handled" by a handler of the form, "by rule" from one of the plain form, or by the "fallback".
        owner: The class whose handler it is; None for the fallback, which serves calls with any types.
        accepted: The types of calls that have been found to be the owner's, subclasses of it and tensors.
    """

    __slots__ = ("accepted", "accepts", "call", "how", "keywords", "named", "owner")

    def __init__(
        self,
        call: Callable[..., Any],
        named: Callable[..., Any],
        how: How,
        owner: Any = None,
        keywords: frozenset[str] = frozenset(),
    ) -> None:
        self.call = call
        self.keywords = keywords
        self.named = named
        self.how = how
        self.owner = owner
        self.accepted: set[tuple[type, ...]] = set()
        self.accepts = self._accepts if owner is not None else _any_types

    def _accepts(self, types: Sequence[type]) -> bool:
        """Whether all types of a call are the owner's business; remembered, for classes seldom change."""
        known = (torch.Tensor, self.owner, *self.owner.accepts)
        if not all(issubclass(each, known) or issubclass(self.owner, each) for each in types):
            return False
        self.accepted.add(tuple(types))
        return True


def _any_types(types: Sequence[type]) -> bool:
    return True


def entry_of_fallback(spelling: Spelling, fallback: Fallback) -> Entry:
    """Serve a spelling by the fallback of its type."""
    return Entry(
        lambda *args: fallback(spelling, args, {}),
        lambda args, kwargs: fallback(spelling, args, kwargs),
        "fallback",
    )


def entry_of(handler: Handler, spelling: Spelling, fallback: Fallback) -> Entry:
    """Serve a spelling by the handler of its family, and by the fallback where this takes too little."""
    is_written = spelling.is_in_place and not handler.origin.is_in_place
    how: How = "handled" if spelling.form == handler.origin.form else "by rule"
    why = f"the arguments of {spelling.name} are bound to the handler of {handler.owner.__name__}"
    recipes: dict[tuple[Any, ...], Recipe] = {}
    call, form_in = handler.call, form_of(spelling)
    is_written_out = "out" not in handler.keywords

    def named(args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        out = None
        if is_written_out and "out" in kwargs:
            out = kwargs["out"]
            kwargs = {name: value for name, value in kwargs.items() if name != "out"}
        break_graph(why)
        form = form_in(args, kwargs)
        try:
            if (recipe := recipes.get(form)) is None:
                if len(recipes) >= _MOST_RECIPES:
                    recipes.clear()
                recipe = recipes[form] = recipe_for(handler, spelling, args, kwargs)
            if recipe.same is None:
                args_of_it, named_of_it = recipe.arguments(args, kwargs)
            else:  # the same with less work, for that is most calls
                args_of_it, named_of_it = args, {}
                for name in recipe.same:
                    named_of_it[name] = kwargs[name]
        except NotTaken:
            return fallback(spelling, args, kwargs if out is None else {**kwargs, "out": out})
        if is_written and kwargs.get("inplace"):
            return NotImplemented
        result = call(*args_of_it, **named_of_it)
        if is_written:
            return write_into(args[0], result, spelling)
        return write_out(out, result, spelling) if out is not None else result

    if not _is_in_order(handler, spelling):
        return Entry(lambda *args: named(args, {}), named, how, handler.owner)
    return Entry(_direct(handler, spelling, is_written), named, how, handler.owner, _keywords(handler, spelling))


def _direct(handler: Handler, spelling: Spelling, is_written: bool) -> Callable[..., Any]:
    """The handler itself, if its parameters are in the order of the spelling."""
    call = handler.call
    is_swapped = spelling.is_swapped != handler.origin.is_swapped
    if is_swapped and is_written:
        return lambda first, second, *rest, **names: write_into(first, call(second, first, *rest, **names), spelling)
    if is_swapped:
        return lambda first, second, *rest, **names: call(second, first, *rest, **names)
    if is_written:
        return lambda first, *rest, **names: write_into(first, call(first, *rest, **names), spelling)
    return call


def _keywords(handler: Handler, spelling: Spelling) -> frozenset[str]:
    """The names that mean the same for a spelling and its handler, wherever its other arguments are."""
    known = {
        parameter.name
        for overload in overloads(spelling.function)
        for position, parameter in enumerate(overload.parameters)
        if position > 1 or parameter.is_keyword or spelling.form == handler.origin.form
    }
    return frozenset(known & handler.keywords)


def _is_in_order(handler: Handler, spelling: Spelling) -> bool:
    """Whether arguments by position mean the same for a handler as for a spelling, in all overloads."""
    if not handler.is_whole or takes_many(spelling.function) or spelling.name == "torch.normal":
        return False
    if spelling.function is handler.origin.function and handler.has_rest:
        return True
    if spelling.name.startswith(_NN) != handler.origin.name.startswith(_NN):
        return False
    known = overloads(spelling.function)
    most = max((len(overload.positional) for overload in known), default=0)
    if any(is_ambiguous(spelling.function, position) for position in range(most)):
        return False
    return handler.has_rest or all(
        handler.name_at(overload, position) is not None
        for overload in overloads(handler.origin.function)
        for position in range(len(overload.positional))
    )
