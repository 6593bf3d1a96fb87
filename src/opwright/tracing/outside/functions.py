"""What functions read: their code, defaults and closures, globals, modules that they import, environment variables."""

from __future__ import annotations

import builtins
import functools
import importlib
import operator
import sys
import types
from collections.abc import Iterator
from typing import Any

from opwright.settings import variable
from opwright.tracing.outside.foreign import read_deep_inside
from opwright.tracing.outside.guard import ABSENT, Check, Fetch, Guard
from opwright.tracing.outside.hazards import Hazard
from opwright.tracing.outside.instructions import Named
from opwright.tracing.outside.plain import is_plain, spelled
from opwright.tracing.outside.purity import answers_otherwise, asks_torch, is_installed, is_third_party
from opwright.tracing.outside.walk import Walk, Way

_get_self = operator.attrgetter("__self__")
_get_function = operator.attrgetter("__func__")
_get_wrapped = operator.attrgetter("__wrapped__")


def function(walk: Walk, value: Any, way: Way) -> Guard:
    """A function that is written in Python."""
    home = value.__globals__.get("__name__")
    if is_installed(home):
        return _installed(walk, value, way, home)
    if is_third_party(home, walk.own):
        found = read_deep_inside(value)
        walk.hazards += found.hazards
        return walk.guard(way, Check.IDENTITY, value, found.fact)
    is_one = not value.__closure__ and "<locals>" not in value.__qualname__
    if is_one:
        walk.known.add(id(value))
    check, expected = (Check.IDENTITY, value) if is_one else (Check.TYPE, types.FunctionType)
    return walk.guard(way, check, expected, "function", _parts(walk, value, way))


def _parts(walk: Walk, value: Any, way: Way) -> Iterator[Guard]:
    code, name = value.__code__, value.__name__
    inside = Way(Fetch.CODE, None, f"code of {name}", code, way.lines)
    yield walk.guard(inside, Check.PLAIN, code, _spelled(code))
    yield walk.describe(value.__defaults__, way.to(Fetch.DEFAULTS, None, f"defaults of {name}"))
    yield walk.describe(value.__kwdefaults__, way.to(Fetch.KEYWORD_DEFAULTS, None, f"defaults of {name}"))
    named = walk.note(code)
    yield from _closure(walk, value, named)
    yield _globals(walk, value, named)
    yield from _imports(walk, value, named)
    yield from _environment(walk, code, named)
    for attribute in walk.counting(vars(value).keys() - {"__wrapped__"}):
        own = way.to(Fetch.ATTRIBUTE, attribute, f"{way.short or name}.{attribute}")
        yield walk.describe(vars(value)[attribute], own)


def _closure(walk: Walk, value: Any, named: Named) -> Iterator[Guard]:
    code = value.__code__
    for position, (name, cell) in enumerate(zip(code.co_freevars, value.__closure__ or (), strict=True)):
        way = Way(Fetch.CELL, position, f"'{name}'", code, named.cells.get(name, frozenset()))
        found = _contents(cell)
        if found is ABSENT:
            yield walk.guard(way, Check.IDENTITY, ABSENT, None)
        elif name != "__class__" and way.lines:
            yield walk.describe(found, way)


def _globals(walk: Walk, value: Any, named: Named) -> Guard:
    code, inner = value.__code__, []
    for name, lines in sorted(named.globals.items()):
        way = Way(Fetch.ITEM, name, f"global '{name}'", code, lines)
        if name in value.__globals__:
            inner.append(walk.describe(value.__globals__[name], way))
            continue
        inner.append(walk.nothing(way))
        if answers_otherwise(getattr(builtins, name, None)):
            walk.hazards.append(Hazard(code, lines, f"what {name}() gives"))
    way = Way(Fetch.GLOBALS, None, "globals", code, frozenset())
    return walk.guard(way, Check.TYPE, dict, "globals", inner)


def _imports(walk: Walk, value: Any, named: Named) -> Iterator[Guard]:
    code, package, inner = value.__code__, value.__globals__.get("__package__") or "", []
    for name, lines in sorted(named.imports.items()):
        full = _module_named(name, package, at_once=name in named.imported_at_once)
        if full is None:
            walk.hazards.append(Hazard(code, lines, f"module '{name}'", imports=True))
            continue
        walk.known.discard(id(sys.modules[full]))  # it may be exchanged for another
        inner.append(walk.describe(sys.modules[full], Way(Fetch.ITEM, full, f"module '{full}'", code, lines)))
    if inner:
        way = Way(Fetch.VIA, _loaded_modules, "modules", code, frozenset())
        yield walk.guard(way, Check.TYPE, dict, "modules", inner)


def _loaded_modules(_: object) -> dict[str, types.ModuleType]:
    return sys.modules


def _module_named(name: str, package: str, *, at_once: bool) -> str | None:
    """The full name of a module that is loaded; one that any call imports is imported now. None if there is none."""
    for full in (name, f"{package}.{name}" if package and name else package):
        if full in sys.modules:
            return full
    if not at_once or not name:
        return None
    try:
        return importlib.import_module(name).__name__
    except Exception:  # the call will say it
        return None


def _environment(walk: Walk, code: types.CodeType, named: Named) -> Iterator[Guard]:
    if named.environment_unknown:
        walk.hazards.append(Hazard(code, named.environment_unknown, "an environment variable"))
    for name, lines in sorted(named.environment.items()):
        look = functools.partial(_variable, name)
        yield walk.describe(variable(name), Way(Fetch.VIA, look, f"environment variable '{name}'", code, lines))


def _variable(name: str, _: object) -> str | None:
    return variable(name)


def _installed(walk: Walk, value: Any, way: Way, home: str) -> Guard:
    """A function of torch, NumPy or Python; one that was made from a user's function counts by that."""
    if answers_otherwise(value):
        return walk.unknown(value, way, f"the answer of {home}.{value.__name__}")
    if asks_torch(value):
        return _answer(walk, value, way)
    inner = []
    if home.partition(".")[0] != "opwright":
        for position, cell in enumerate(value.__closure__ or ()):  # what torch.vmap and the like were made from
            found = _contents(cell)
            if isinstance(found, (types.FunctionType, list, dict)) or is_plain(found):
                label = f"{value.__code__.co_freevars[position]} of {value.__name__}"
                inner.append(walk.describe(found, way.to(Fetch.CELL, position, label)))
    if not inner:
        return walk.same(value, way)
    code = walk.guard(way.to(Fetch.CODE, None, way.label), Check.PLAIN, value.__code__, value.__qualname__)
    return walk.guard(way, Check.TYPE, type(value), "function", (code, *inner))


def _answer(walk: Walk, value: Any, way: Way) -> Guard:
    """What torch says of its modes: asked again at every call."""
    answer = walk.describe(value(), way.to(Fetch.CALL, None, f"{way.short or value.__name__}()"))
    return walk.same(value, way, (answer,))


def builtin(walk: Walk, value: Any, way: Way) -> Guard:
    """A function that is written in C, perhaps a method of some object, such as `scales.get`."""
    owner = getattr(value, "__self__", None)
    if answers_otherwise(value):
        return walk.unknown(value, way, f"the answer of {value.__name__}")
    if owner is None or isinstance(owner, types.ModuleType):
        return _answer(walk, value, way) if asks_torch(value) else walk.same(value, way)
    bound = walk.describe(owner, way.to(Fetch.VIA, _get_self, f"what {way.label} belongs to"))
    return walk.guard(way, Check.TYPE, type(value), value.__name__, (bound,))


def method(walk: Walk, value: Any, way: Way) -> Guard:
    """A bound method."""
    if answers_otherwise(value):
        return walk.unknown(value, way, f"the answer of {way.label}")
    inner = (
        walk.describe(value.__func__, way.to(Fetch.VIA, _get_function, way.label)),
        walk.describe(value.__self__, way.to(Fetch.VIA, _get_self, "'self'")),
    )
    return walk.guard(way, Check.TYPE, type(value), "method", inner)


def wrapper(walk: Walk, value: Any, way: Way) -> Guard:
    """A static method, a class method, a cached function: all is in the function."""
    inner = walk.describe(value.__wrapped__, way.to(Fetch.VIA, _get_wrapped, way.label))
    return walk.guard(way, Check.TYPE, type(value), type(value).__name__, (inner,))


def partial(walk: Walk, value: Any, way: Way) -> Guard:
    """A function with some of its arguments."""
    inner = [
        walk.describe(getattr(value, part), way.to(Fetch.VIA, operator.attrgetter(part), f"{part} of {way.label}"))
        for part in ("func", "args", "keywords")
    ]
    return walk.guard(way, Check.TYPE, type(value), "partial", inner)


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return ABSENT


def _spelled(code: types.CodeType) -> str:
    """A code object as text that is the same wherever it stands."""
    parts = [code.co_code.hex(), repr((code.co_names, code.co_varnames, code.co_freevars, code.co_flags))]
    parts += [repr((code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount))]
    parts += [_spelled(each) if isinstance(each, types.CodeType) else spelled(each) for each in code.co_consts]
    return " ".join(parts)
