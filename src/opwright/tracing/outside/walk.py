"""The walk through everything that a function can reach by the names in its code.

    describe(value, way) -> Guard      by the rules in functions, classes, objects and containers

An object's attribute is guarded if its name occurs in any code that was reached: a walk cannot know which object a name
will be looked up on. So the walk is repeated until it finds no new names.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opwright.errors import Place
from opwright.tracing.outside.code.identity import comparisons
from opwright.tracing.outside.code.instructions import FIELDS, Lines, Named, codes_in, named_by
from opwright.tracing.outside.guard import Check, Fetch, Guard
from opwright.tracing.outside.hazards import Hazard
from opwright.tracing.outside.plain import computes_in_decimal, decimal_settings, is_plain, spelled
from opwright.tracing.outside.ran import Codes, spelled_code
from opwright.tracing.outside.unasked import ABSENT

MOST_VALUES = 512
MOST_MEMBERS = 64  # of a container


@dataclass(frozen=True, slots=True)
class Way:
    """How a value was found.

    Attributes:
        fetch: How to fetch it from the value before.
        key: A name, a position, or whatever `fetch` needs.
        label: Its name, as in "global 'scale'".
        code: The code that reads it or its container.
        lines: The lines that do; those of a module's attribute are found by its name.
        attribute: The name of the attribute that led here last.
    """

    fetch: Fetch
    key: Any
    label: str
    code: types.CodeType
    lines: Lines
    attribute: str = ""

    def to(self, fetch: Fetch, key: Any, label: str) -> Way:
        """The way to a member of the value, read by the same lines."""
        return Way(fetch, key, label, self.code, self.lines, self.attribute)

    def member(self, fetch: Fetch, key: Any) -> Way:
        """The way to an attribute."""
        return Way(fetch, key, f"{self.short}.{key}".removeprefix("."), self.code, self.lines, key)

    @property
    def short(self) -> str:
        """The label, spelled as in code."""
        return self.label.removeprefix("global ").removeprefix("module ").replace("'", "")

    @property
    def place(self) -> Place:
        """The first of the lines."""
        return _first_of(self.code.co_filename, self.lines, self.code.co_firstlineno)


@functools.lru_cache(maxsize=4096)  # what the same lines read has one place
def _first_of(file: str, lines: Lines, otherwise: int) -> Place:
    return Place(file, min(lines, default=otherwise))


@dataclass(slots=True)
class Layers:
    """Tensors that are arguments, and the modules that hold them, in slots: whatever is there at a call.

    Attributes:
        of_module: Whether they are those of a served module; else those that a function uses.
        slots: The slots by identity.
        tensors: Those of tensors, with their names and whether they are parameters.
        hooked: The names of modules with hooks.
        has_modules: Whether a module was met.
        only: Of the served module itself, the names of the tensors and modules that count; None if all do.
    """

    of_module: bool = True
    slots: dict[int, int] = field(default_factory=dict)
    tensors: list[tuple[int, str, bool]] = field(default_factory=list)
    hooked: list[str] = field(default_factory=list)
    has_modules: bool = False
    only: frozenset[str] | None = None


Follow = Callable[["Walk", Any, Way], Guard]


@dataclass(slots=True)
class Walk:
    """One walk.

    Attributes:
        names: The attribute names found, unless every name counts.
        every_name: Whether attributes may be read by computed names.
        asked: Attributes that may be read although missing.
        frozen: Labels of values that are treated as constants.
        own: The packages whose code is read: those of the function, or of a module and of those inside it.
        follow: The rule for a value.
        hazards: What cannot be compared.
        unordered: Lines that make sets, which other processes go through in another order.
        known: Guards of shared objects (modules, classes, plain functions) by identity; classes with the methods
            assumed to be called.
        layers: Which tensors are arguments that code reads outside, and the modules that hold them; None if none are.
        most_values: After so many values, the rest is unknown.
        ran: The functions that are searched; None for all that can be reached.
    """

    names: frozenset[str]
    every_name: bool
    asked: frozenset[str]
    frozen: frozenset[str]
    own: frozenset[str]
    follow: Callable[[Any], Follow]
    layers: Layers | None = None
    most_values: int = MOST_VALUES
    ran: Codes | None = None
    hazards: list[Hazard] = field(default_factory=list)
    unordered: list[Hazard] = field(default_factory=list)
    known: set[object] = field(default_factory=set)
    met_names: set[str] = field(default_factory=set)
    met_asked: set[str] = field(default_factory=set)
    met_dynamic: bool = False
    _noted: dict[types.CodeType, Named] = field(default_factory=dict)
    _unread: list[tuple[str, str]] = field(default_factory=list)
    _entered: list[tuple[Any, Way]] = field(default_factory=list)
    _in_reader: dict[int, list[str | int]] = field(default_factory=dict)
    _again: list[tuple[int, Way]] = field(default_factory=list)
    _values: int = 0

    @property
    def is_of_module(self) -> bool:
        """Whether it is a walk through what a served module can reach."""
        return self.layers is not None and self.layers.of_module

    def describe(self, value: Any, way: Way) -> Guard:
        """The guard of a value, with those of its members."""
        self._values += 1
        if way.short in self.frozen:
            return self.guard(way, Check.NOTHING, None, spelled(value) if is_plain(value) else None)
        if is_plain(value):
            self._note_fields(value)
            return self.guard(way, Check.PLAIN, value, spelled(value), self.decimals(value, way))
        if self._values > self.most_values:
            return self.unknown(value, way, f"more than {self.most_values} values")
        if id(value) in self.known or any(value is entered for entered, _ in self._entered):
            self.meets_again(value, way)
            return self.guard(way, Check.IDENTITY, value, "again")
        self._entered.append((value, way))
        try:
            return self.follow(value)(self, value, way)
        finally:
            self._entered.pop()

    def _note_fields(self, value: Any) -> None:
        """Note the attributes that a text names, as `"{0.scale}"` does in `TEXT.format(config)`."""
        if isinstance(value, tuple):
            for member in value:
                self._note_fields(member)
        elif isinstance(value, str) and "{" in value:
            self.met_names.update(FIELDS.findall(value))

    def decimals(self, value: Any, way: Way) -> Iterator[Guard]:
        """The guard of the settings for decimal numbers, where a value is one."""
        if computes_in_decimal(value):
            settings = decimal_settings(value)
            inside = way.to(Fetch.VIA, decimal_settings, f"settings of {way.label}")
            yield self.guard(inside, Check.PLAIN, settings, spelled(settings))

    def guard(self, way: Way, check: Check, expected: Any, fact: str | None, inner: Iterable[Guard] = ()) -> Guard:
        """A guard with others in it."""
        told = None if fact is None else f"{way.label} {fact}"
        return Guard(way.fetch, way.key, check, expected, tuple(inner), way.label, way.place, told)

    def same(self, value: Any, way: Way, inner: Iterable[Guard] = ()) -> Guard:
        """A guard of identity."""
        called = getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or type(value).__qualname__
        return self.guard(way, Check.IDENTITY, value, f"{getattr(value, '__module__', '')}.{called}", inner)

    def nothing(self, way: Way) -> Guard:
        """A guard of absence."""
        return self.guard(way, Check.IDENTITY, ABSENT, "nothing")

    def unknown(self, value: Any, way: Way, what: str = "") -> Guard:
        """A value that cannot be compared: a trace must not read it, so records on disk ignore it."""
        fact = f"{way.label}, {what or f'a {type(value).__name__}'}"
        if not self.is_of_module:
            self._note_in_readers(way, fact)
            self.hazards.append(Hazard(way.code, way.lines, fact))
            return self.guard(way, Check.IDENTITY, value, "not read")
        if way.lines:
            self.hazards.append(Hazard(way.code, way.lines, fact))
        else:
            self._unread.append((way.attribute, fact))
        return self.guard(way, Check.NOTHING, None, "not read")  # which would keep the value alive

    def meets_again(self, value: Any, way: Way) -> None:
        """Note that a value whose guards stand elsewhere is met on another way: its hazards are on these lines, too."""
        self._note_in_readers(way, id(value))
        self._again.append((id(value), way))

    def _note_in_readers(self, way: Way, what: str | int) -> None:
        """Note a hazard, or a value that is met again, in the values that the same lines read."""
        for value, entry in self._entered:
            if entry.code is way.code and entry.lines == way.lines:
                self._in_reader.setdefault(id(value), []).append(what)

    def _facts_in(self, value: int, seen: set[int]) -> Iterator[str]:
        """What cannot be compared in a value."""
        if value not in seen:
            seen.add(value)
            for what in self._in_reader.get(value, ()):
                yield from (what,) if isinstance(what, str) else self._facts_in(what, seen)

    def most_members(self) -> int:
        """How many members of a container are compared."""
        return self.most_values if self.is_of_module else MOST_MEMBERS

    def every_hazard(self) -> tuple[Hazard, ...]:
        """Those found, and the lines that name attributes of modules that cannot be compared."""
        named = (
            Hazard(code, lines, fact)
            for attribute, fact in self._unread
            for code, found in self._noted.items()
            if (lines := found.lines.get(attribute, frozenset()) | found.computed)
        )
        again = (
            Hazard(way.code, way.lines, fact) for value, way in self._again for fact in self._facts_in(value, set())
        )
        return (*self.hazards, *named, *again)

    def note(self, code: types.CodeType) -> Named:
        """Remember the names in some code."""
        named = self._noted[code] = named_by(code)
        self.met_names |= named.attributes | named.strings
        self.met_dynamic |= named.is_dynamic
        if named.may_miss:
            self.met_asked |= {name for name in named.attributes | named.strings if name.isidentifier()}
        return named

    @contextmanager
    def searching_all(self) -> Iterator[None]:
        """Search all functions until the end of the block, not only those that ran."""
        ran, self.ran = self.ran, None
        try:
            yield
        finally:
            self.ran = ran

    def searches(self, code: types.CodeType) -> bool:
        """Whether what some code names is guarded."""
        return self.ran is None or spelled_code(code) in self.ran

    def searched(self) -> Codes | None:
        """The code that was searched, if only some is, with that of functions defined inside."""
        return (
            None
            if self.ran is None
            else frozenset(spelled_code(each) for code in self._noted for each in codes_in(code))
        )

    def noted(self) -> frozenset[types.CodeType] | None:
        """The code whose reads are guarded, with that of functions defined inside; None if some values are frozen."""
        if self.frozen:  # their methods are part of what is constant
            return None
        return frozenset(each for code in self._noted for each in codes_in(code))

    def may_ask_for_identity(self) -> bool:
        """Whether code that was searched asks whether two values are one object."""
        return any(comparisons(each) for code in self._noted for each in codes_in(code))

    def counting(self, held: Set[str] | Mapping[str, Any]) -> list[str]:
        """The attributes that are guarded, in order."""
        return sorted(held if self.every_name else self.names.intersection(held))
