"""Guards of functions: code, defaults, closures, globals, imported modules, environment variables."""

from __future__ import annotations

import builtins
import functools
import gc
import importlib
import operator
import sys
import types
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch

from opwright.settings import variable
from opwright.tracing.outside.code.instructions import DYNAMIC, Lines, Named, named_by, used_constants
from opwright.tracing.outside.code.unordered import ASKING
from opwright.tracing.outside.foreign import read_deep_inside
from opwright.tracing.outside.guard import Check, Fetch, Guard
from opwright.tracing.outside.hazards import Hazard
from opwright.tracing.outside.plain import is_plain, spelled, spelled_in_any_order
from opwright.tracing.outside.purity import (
    answers_of_devices,
    answers_otherwise,
    asks_torch,
    asks_torch_of_devices,
    is_installed,
    is_third_party,
    module_of,
    needs_gradients_recorded,
)
from opwright.tracing.outside.ran import spelled_code
from opwright.tracing.outside.rules import containers
from opwright.tracing.outside.rules.classes import class_of
from opwright.tracing.outside.unasked import ABSENT, content
from opwright.tracing.outside.walk import Walk, Way


def function(walk: Walk, value: Any, way: Way) -> Guard:
    """A Python function."""
    home = value.__globals__.get("__name__")
    if is_installed(home):
        return _installed(walk, value, way, home)
    if walk.ran is None and is_third_party(home, walk.own):
        found = read_deep_inside(value)
        walk.hazards += found.hazards
        inner = (*_made_from(walk, value, way), *_settings(walk, found.functions))
        return walk.guard(way, Check.IDENTITY, value, found.fact, inner)
    is_one = not value.__closure__ and "<locals>" not in value.__qualname__
    if is_one and walk.searches(value.__code__):
        walk.known.add(id(value))
    check, expected = (Check.IDENTITY, value) if is_one else (Check.TYPE, types.FunctionType)
    parts = _parts(walk, value, way) if walk.searches(value.__code__) else (_code(walk, value, way),)
    return walk.guard(way, check, expected, "function", parts)


def _parts(walk: Walk, value: Any, way: Way) -> Iterator[Guard]:
    code, name = value.__code__, value.__name__
    named = walk.note(code)
    yield _code(walk, value, way)
    yield walk.describe(value.__defaults__, way.to(Fetch.DEFAULTS, None, f"defaults of {name}"))
    yield walk.describe(value.__kwdefaults__, way.to(Fetch.KEYWORD_DEFAULTS, None, f"defaults of {name}"))
    yield from _closure(walk, value, named)
    yield from _globals(walk, value, named)
    yield from _imports(walk, value, named)
    yield from _environment(walk, code, named)
    for attribute in walk.counting(vars(value).keys() - ({"__wrapped__"} - walk.names)):
        own = way.to(Fetch.ATTRIBUTE, attribute, f"{way.short or name}.{attribute}")
        yield walk.describe(vars(value)[attribute], own)


def _code(walk: Walk, value: Any, way: Way) -> Guard:
    code = value.__code__
    inside = Way(Fetch.CODE, None, f"code of {value.__name__}", code, way.lines)
    if not walk.searches(code):
        return walk.guard(inside, Check.PLAIN, code, spelled_code(code))
    # The order of sets of strings or objects varies by process. Where it is told what runs, so is whether one is made.
    sets = named_by(code).sets
    if sets and walk.ran is not None:
        walk.unordered.append(Hazard(code, sets, "a set"))
    is_unknown = (sets and walk.ran is None) or not ASKING.isdisjoint(value.__globals__)
    return walk.guard(inside, Check.PLAIN, code, None if is_unknown else _spelled(code))


def _closure(walk: Walk, value: Any, named: Named) -> Iterator[Guard]:
    code = value.__code__
    for position, (name, cell) in enumerate(zip(code.co_freevars, value.__closure__ or (), strict=True)):
        way = Way(Fetch.CELL, position, f"'{name}'", code, named.cells.get(name, frozenset()))
        found = content(cell)
        if found is ABSENT:
            yield walk.guard(way, Check.IDENTITY, ABSENT, None)
        elif name == "__class__" and way.lines:  # what `super()` looks for is guarded with the class of `self`
            yield class_of(walk, found, way)
        elif way.lines:
            yield _by_name(walk, found, way, named.used.get(name, frozenset()))


def _by_name(walk: Walk, value: Any, way: Way, used: Lines) -> Guard:
    """What a name stands for; `used` are the lines that do more with it than to ask for members."""
    if type(value) not in (set, frozenset) or way.short in walk.frozen or (used and containers.is_comparable(value)):
        return walk.describe(value, way)
    if used:
        walk.hazards.append(Hazard(way.code, used, f"{way.label}, a set of objects"))
    return containers.only_asked(walk, value, way)


def _globals(walk: Walk, value: Any, named: Named) -> Iterator[Guard]:
    code, inner, built_in = value.__code__, [], []
    every_built_in = value.__builtins__
    for name, lines in sorted(named.globals.items()):
        way = Way(Fetch.ITEM, name, f"global '{name}'", code, lines)
        if name in value.__globals__:
            inner.append(_by_name(walk, value.__globals__[name], way, named.used.get(name, frozenset())))
            continue
        found = every_built_in.get(name, ABSENT)
        fact = None if found in (hash, id) else "nothing"  # what these give is another number in another process
        inner.append(walk.guard(way, Check.IDENTITY, ABSENT, fact))
        built_in.append(_built_in(walk, found, replace(way, label=f"built-in '{name}'")))
        if answers_otherwise(found):
            walk.hazards.append(Hazard(code, lines, f"what {name}() gives"))
    way = Way(Fetch.GLOBALS, None, "globals", code, frozenset())
    yield walk.guard(way, Check.TYPE, dict, "globals", inner)
    if built_in:
        way = Way(Fetch.KNOWN, every_built_in, "built-ins", code, frozenset())
        yield walk.guard(way, Check.TYPE, dict, "built-ins", built_in)


def _built_in(walk: Walk, found: Any, way: Way) -> Guard:
    """The guard of a builtin that a name refers to because the module does not define it."""
    if found is ABSENT:
        return walk.nothing(way)
    is_python_s = isinstance(found, (types.BuiltinFunctionType, type)) and found.__module__ == builtins.__name__
    return walk.same(found, way) if is_python_s else walk.describe(found, way)


def _imports(walk: Walk, value: Any, named: Named) -> Iterator[Guard]:
    code, package, inner = value.__code__, value.__globals__.get("__package__") or "", []
    for name, lines in sorted(named.imports.items()):
        full = _module_named(name, package, at_once=name in named.imported_at_once)
        if full is None:
            walk.hazards.append(Hazard(code, lines, f"module '{name}'", imports=True))
            continue
        walk.known.discard(id(sys.modules[full]))  # it may be replaced
        inner.append(walk.describe(sys.modules[full], Way(Fetch.ITEM, full, f"module '{full}'", code, lines)))
    if inner:
        way = Way(Fetch.KNOWN, sys.modules, "modules", code, frozenset())
        yield walk.guard(way, Check.TYPE, dict, "modules", inner)


def _module_named(name: str, package: str, *, at_once: bool) -> str | None:
    """The full name of a loaded module; one that every call imports is imported now. None if there is none."""
    for full in (name, f"{package}.{name}" if package and name else package):
        if full in sys.modules:
            return full
    if not at_once or not name:
        return None
    try:
        return importlib.import_module(name).__name__
    except Exception:  # the call will raise it
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
    """A function of torch, NumPy or Python; one made from a user's function is guarded as that."""
    if answers_otherwise(value):
        return walk.unknown(value, way, f"the answer of {home}.{value.__name__}")
    if asks_torch(value):
        return _answer(walk, value, way)
    if needs_gradients_recorded(value):
        return walk.same(value, way, _modes_of_gradients(walk, way))
    inner: list[Guard] = []
    if home.partition(".")[0] != "opwright":
        inner += _made_from(walk, value, way)
    if not inner:
        return walk.same(value, way)
    code = walk.guard(way.to(Fetch.CODE, None, way.label), Check.PLAIN, value.__code__, value.__qualname__)
    return walk.guard(way, Check.TYPE, type(value), "function", (code, *inner))


def _made_from(walk: Walk, value: Any, way: Way) -> Iterator[Guard]:
    """The function behind a wrapper of a library, such as `torch.vmap` or a decorator."""
    for position, cell in enumerate(value.__closure__ or ()):
        found = content(cell)
        if _is_given(found):
            label = f"{value.__code__.co_freevars[position]} of {value.__name__}"
            yield walk.describe(found, way.to(Fetch.CELL, position, label))
    defaults = {**dict(enumerate(value.__defaults__ or ())), **(value.__kwdefaults__ or {})}
    for key, found in defaults.items():
        if isinstance(found, types.FunctionType):
            fetch = Fetch.DEFAULTS if isinstance(key, int) else Fetch.KEYWORD_DEFAULTS
            whole = value.__defaults__ if isinstance(key, int) else value.__kwdefaults__
            yield walk.describe(whole, way.to(fetch, None, f"defaults of {value.__name__}"))
            return


def _is_given(found: Any) -> bool:
    if isinstance(found, types.MethodType):
        return _is_given(found.__self__)
    kinds = (types.FunctionType, functools.partial, list, dict)
    return isinstance(found, kinds) or is_plain(found) or not is_installed(module_of(type(found)))


def _settings(walk: Walk, functions: Iterable[types.FunctionType]) -> Iterator[Guard]:
    """Plain values in a library's modules that its functions read and others may write."""
    for each in functions:
        code, space = each.__code__, each.__globals__
        read = {name: space[name] for name in named_by(code).globals if name in space and is_plain(space[name])}
        if read:
            way = Way(Fetch.KNOWN, space, f"globals of {each.__name__}", code, frozenset())
            inner = [walk.describe(held, way.member(Fetch.ITEM, name)) for name, held in sorted(read.items())]
            yield walk.guard(way, Check.TYPE, dict, None, inner)


def _answer(walk: Walk, value: Any, way: Way) -> Guard:
    """The value of one of torch's modes, tested at every call; once, wherever it is asked for."""
    kind = (id(value), "answer")
    if kind in walk.known:
        return walk.same(value, way)
    walk.known.add(kind)
    asked = f"{way.short or value.__name__}()"
    if asks_torch_of_devices(value):
        answer = walk.describe(answers_of_devices(value), way.to(Fetch.VIA, answers_of_devices, asked))
    else:
        answer = walk.describe(value(), way.to(Fetch.CALL, None, asked))
    return walk.same(value, way, (answer,))


def _modes_of_gradients(walk: Walk, way: Way) -> Iterator[Guard]:
    """Whether gradients are recorded, as by a function that asks."""
    for ask in (torch.is_grad_enabled, torch.is_inference_mode_enabled):
        yield _answer(walk, ask, Way(Fetch.KNOWN, ask, f"torch.{ask.__name__}", way.code, way.lines))


def builtin(walk: Walk, value: Any, way: Way) -> Guard:
    """A builtin function, perhaps a method of some object, such as `scales.get`."""
    owner = getattr(value, "__self__", None)
    walk.met_dynamic = walk.met_dynamic or value.__name__ in DYNAMIC  # by another name than its own
    if answers_otherwise(value):
        return walk.unknown(value, way, f"the answer of {value.__name__}")
    if owner is None or isinstance(owner, types.ModuleType):
        return _answer(walk, value, way) if asks_torch(value) else walk.same(value, way)
    bound = walk.describe(owner, way.to(Fetch.MEMBER, "__self__", f"what {way.label} belongs to"))
    return walk.guard(way, Check.TYPE, type(value), value.__name__, (bound,))


def method(walk: Walk, value: Any, way: Way) -> Guard:
    """A bound method."""
    if answers_otherwise(value):
        return walk.unknown(value, way, f"the answer of {way.label}")
    inner = (
        walk.describe(value.__func__, way.to(Fetch.MEMBER, "__func__", way.label)),
        walk.describe(value.__self__, way.to(Fetch.MEMBER, "__self__", "'self'")),
    )
    return walk.guard(way, Check.TYPE, type(value), "method", inner)


def wrapper(walk: Walk, value: Any, way: Way) -> Guard:
    """A static method or class method, guarded as its function."""
    inner = walk.describe(value.__wrapped__, way.to(Fetch.MEMBER, "__wrapped__", way.label))
    return walk.guard(way, Check.TYPE, type(value), type(value).__name__, (inner,))


def cached(walk: Walk, value: Any, way: Way) -> Guard:
    """A cached function: guard its cache too, unless the results would be the same again."""
    function = walk.describe(value.__wrapped__, way.to(Fetch.MEMBER, "__wrapped__", way.label))
    held = _remembered(value)
    if all(map(is_plain, held)) and not any(map(_is_state, _within(function))):
        return walk.guard(way, Check.TYPE, type(value), type(value).__name__, (function,))
    inner = walk.describe(held, way.to(Fetch.VIA, _remembered, f"what {way.label} remembers"))
    return walk.guard(way, Check.TYPE, type(value), type(value).__name__, (function, inner))


def _remembered(value: Any) -> tuple[Any, ...]:
    """The results in a function's cache, found through the garbage collector."""
    held = [each for each in gc.get_referents(value) if not isinstance(each, type)]  # key, result, key, ..., the dict
    results = next((each for each in held if type(each) is dict and each is not vars(value)), {})
    if value.cache_parameters()["maxsize"] is None:
        return tuple(results.values())
    places = {id(key): place for place, key in reversed(list(enumerate(held)))}
    return tuple([held[places[id(key)] + 1] for key in results])


def _within(guard: Guard) -> Iterator[Guard]:
    yield guard
    for inner in guard.guards:
        yield from _within(inner)


def _is_state(guard: Guard) -> bool:
    """Whether a guard is of a mutable value, not of code."""
    return guard.check is not Check.IDENTITY and guard.fetch in (Fetch.ITEM, Fetch.INDEX, Fetch.ATTRIBUTE, Fetch.CELL)


def getter(walk: Walk, value: Any, way: Way) -> Guard:
    """An `operator.itemgetter` or the like, whose attribute names are in no code."""
    walk.met_dynamic = walk.met_dynamic or not isinstance(value, operator.itemgetter)
    return walk.guard(way, Check.IDENTITY, value, repr(value))


def partial(walk: Walk, value: Any, way: Way) -> Guard:
    """A function with some of its arguments."""
    inner = [
        walk.describe(getattr(value, part), way.to(Fetch.MEMBER, part, f"{part} of {way.label}"))
        for part in ("func", "args", "keywords")
    ]
    return walk.guard(way, Check.TYPE, type(value), "partial", inner)


def _spelled(code: types.CodeType) -> str:
    """A code object as text, independent of its place."""
    parts = [code.co_code.hex(), repr((code.co_names, code.co_varnames, code.co_freevars, code.co_flags))]
    parts += [repr((code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount))]
    used = used_constants(code)
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            parts.append(_spelled(each))
        elif isinstance(each, frozenset) and each not in used:
            parts.append(spelled_in_any_order(each))
        else:
            parts.append(spelled(each))
    return " ".join(parts)
