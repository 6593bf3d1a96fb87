"""The names in code, with their lines: globals, closure variables, attributes, imports, environment variables."""

from __future__ import annotations

import dis
import functools
import itertools
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from opwright.tracing.outside.code.unordered import is_only_asked, set_lines, singles

Lines = frozenset[int]

_SETTING = frozenset({"STORE_ATTR", "DELETE_ATTR"})
_SETTERS = frozenset({"setattr", "delattr", "__setattr__", "__delattr__", "vars", "__dict__"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM", "STORE_ATTR", "LOAD_SUPER_ATTR"})
_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_CELLS = frozenset({"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
_LOCALS = frozenset({"LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK", "LOAD_CLOSURE"})
_NOTHING = frozenset({"CACHE", "PRECALL", "PUSH_NULL", "NOP", "EXTENDED_ARG", "NOT_TAKEN"})
_ENVIRONMENT = frozenset({"environ", "getenv"})
_ENVIRONMENT_IN_BYTES = frozenset({"environb", "getenvb"})
_LONGEST_LOOKUP = 4  # instructions behind the name: `get`, the key, a default, the call
_VALUES = ("LOAD_CONST", "LOAD_FAST", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_NAME", "LOAD_SMALL_INT")
# Code with one of these names may read an attribute whose name is in no instruction.
DYNAMIC = frozenset({
    "getattr", "hasattr", "vars", "__dict__", "attrgetter", "methodcaller", "__getattribute__", "fields", "asdict",
    "astuple", "getmembers", "getattr_static", "__getstate__",
})  # fmt: skip
_BY_NAME = frozenset({"getattr", "hasattr"})  # of these, those that take the name
# Code with one of these names or instructions may call methods that it does not name.
_IMPLIES: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("str", "repr", "format", "print", "ascii", "FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC",
                     "CONVERT_VALUE", "%"), frozenset({"__str__", "__repr__", "__format__"})),
    **dict.fromkeys(("copy", "deepcopy"), frozenset({
        "__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__",
        "__getnewargs_ex__", "__init__", "__new__"})),
    **dict.fromkeys(("type", "__class__", "cls", "replace"), frozenset({"__init__", "__new__", "__post_init__"})),
}  # fmt: skip
FIELDS = re.compile(r"\.([^\W\d]\w*)")  # attributes in `"{0.scale}".format(config)`
_CATCHING = frozenset({"AttributeError", "Exception", "BaseException", "suppress"})


@dataclass(frozen=True, slots=True)
class Named:
    """The names in code, with their lines.

    Attributes:
        globals: Global names.
        cells: Variables of enclosing functions.
        attributes: Attributes, of any object.
        strings: Constants that are strings, which `getattr` may be given.
        imports: Modules that are imported inside.
        imported_at_once: Of these, those that every call imports.
        environment: Environment variables, by name.
        environment_unknown: Lines that read environment variables whose names are computed.
        used: Globals and closure variables that are used for more than `in`, with the lines that do.
        sets: Lines that make sets whose order may matter.
        is_dynamic: Whether attributes may be read by computed names.
        may_miss: Whether missing attributes may be read.
        lines: The lines of attributes and strings.
        computed: Lines that may read an attribute whose name is computed.
    """

    globals: Mapping[str, Lines]
    cells: Mapping[str, Lines]
    attributes: frozenset[str]
    strings: frozenset[str]
    imports: Mapping[str, Lines]
    imported_at_once: frozenset[str]
    environment: Mapping[str, Lines]
    environment_unknown: Lines
    used: Mapping[str, Lines]
    sets: Lines
    is_dynamic: bool
    may_miss: bool
    lines: Mapping[str, Lines]
    computed: Lines


@functools.lru_cache(maxsize=4096)
def named_by(code: types.CodeType) -> Named:
    """The names in a code object, including nested functions."""
    each = (step for step in dis.get_instructions(code) if step.opname not in _NOTHING)
    steps = [single for step in each for single in singles(step)]
    found = _Found(code.co_freevars, set_lines(code, steps))
    line, has_jumped = code.co_firstlineno, False
    for position, step in enumerate(steps):
        line = (step.positions and step.positions.lineno) or line
        has_jumped = has_jumped or "JUMP" in step.opname or step.opname == "FOR_ITER"
        following = steps[position + 1 : position + 1 + _LONGEST_LOOKUP]
        found.note(step, following, line, is_certain=not has_jumped)
    for inner in _inner(code):
        found.add(named_by(inner))
    return found.named()


class _Found:
    def __init__(self, free: Sequence[str], sets: Lines) -> None:
        self._free = frozenset(free)
        self._globals: dict[str, Lines] = {}
        self._cells: dict[str, Lines] = {}
        self._attributes: set[str] = set()
        self._strings: set[str] = set()
        self._imports: dict[str, Lines] = {}
        self._at_once: set[str] = set()
        self._environment: dict[str, Lines] = {}
        self._unknown: Lines = frozenset()
        self._used: dict[str, Lines] = {}
        self._sets = sets
        self._is_dynamic = False
        self._may_miss = False
        self._lines: dict[str, Lines] = {}
        self._computed: Lines = frozenset()

    def note(self, step: dis.Instruction, following: Sequence[dis.Instruction], line: int, *, is_certain: bool) -> None:
        kind, name = step.opname, step.argval
        if kind in _GLOBALS | _CELLS and not is_only_asked(following):
            _add(self._used, name, line)
        if kind in _GLOBALS:
            _add(self._globals, name, line)
        elif kind in _CELLS and name in self._free:
            _add(self._cells, name, line)
        elif kind in _ATTRIBUTES:
            self._attributes.add(name)
            _add(self._lines, name, line)
        elif kind == "LOAD_CONST" and isinstance(name, str):
            texts = [name, *(FIELDS.findall(name) if "{" in name else ())]
            self._strings.update(texts)
            for text in texts:
                _add(self._lines, text, line)
        elif kind == "IMPORT_NAME":
            _add(self._imports, name, line)
            self._at_once |= {name} if is_certain else set()
        elif kind == "MATCH_CLASS" or (kind == "PUSH_EXC_INFO" and following and following[0].opname == "POP_TOP"):
            self._may_miss = True
            self._is_dynamic |= kind == "MATCH_CLASS"
            self._computed |= {line} if kind == "MATCH_CLASS" else frozenset()
        self._attributes |= _IMPLIES.get(kind, frozenset())
        if kind in _GLOBALS | _ATTRIBUTES | _LOCALS:
            self._attributes |= _IMPLIES.get(name, frozenset())
        elif kind == "BINARY_OP" and step.argrepr.startswith("%"):
            self._attributes |= _IMPLIES["%"]
        if kind not in _ATTRIBUTES | _GLOBALS | _CELLS or kind == "IMPORT_FROM":
            return
        if name in DYNAMIC and not (name in _BY_NAME and _names_a_constant(following)):
            self._computed |= {line}
        if name in _ENVIRONMENT_IN_BYTES:
            self._unknown |= {line}
        if name in _ENVIRONMENT:
            key = _environment_key(name, following)
            if key is None:
                self._unknown |= {line}
            else:
                _add(self._environment, key, line)

    def add(self, inner: Named) -> None:
        for mine, theirs in (
            (self._globals, inner.globals),
            (self._cells, {name: lines for name, lines in inner.cells.items() if name in self._free}),
            (self._imports, inner.imports),
            (self._environment, inner.environment),
            (self._lines, inner.lines),
            (self._used, inner.used),
        ):
            for name, lines in theirs.items():
                mine[name] = mine.get(name, frozenset()) | lines
        self._attributes |= inner.attributes
        self._strings |= inner.strings
        self._unknown |= inner.environment_unknown
        self._sets |= inner.sets
        self._is_dynamic |= inner.is_dynamic
        self._may_miss |= inner.may_miss
        self._computed |= inner.computed

    def named(self) -> Named:
        named = self._attributes | self._globals.keys()
        is_dynamic = self._is_dynamic or not DYNAMIC.isdisjoint(named)
        return Named(
            self._globals,
            self._cells,
            frozenset(self._attributes),
            frozenset(self._strings),
            self._imports,
            frozenset(self._at_once),
            self._environment,
            self._unknown,
            self._used,
            self._sets,
            is_dynamic,
            is_dynamic or self._may_miss or not _CATCHING.isdisjoint(named),
            self._lines,
            self._computed,
        )


def _names_a_constant(following: Sequence[dis.Instruction]) -> bool:
    """Whether `getattr(x, "name")`, or `getattr(x.y, "name", default)`, is what follows."""
    for place in (1, 2):
        match following[place : place + 2]:
            case [key, after] if key.opname == "LOAD_CONST" and isinstance(key.argval, str):
                return after.opname == "CALL" or after.opname.startswith(_VALUES)
    return False


@functools.lru_cache(maxsize=4096)
def used_constants(code: types.CodeType) -> frozenset[object]:
    """The constant sets of code that are used for more than `in`."""
    steps = [step for step in dis.get_instructions(code) if step.opname not in _NOTHING]
    return frozenset(
        step.argval
        for step, following in itertools.pairwise(steps)
        if step.opname == "LOAD_CONST" and isinstance(step.argval, frozenset) and not is_only_asked([following])
    )


def _add(lines: dict[str, Lines], name: str, line: int) -> None:
    lines[name] = lines.get(name, frozenset()) | {line}


def names_in(code: types.CodeType) -> set[str]:
    """The global names and attributes that code uses, including nested functions."""
    named = named_by(code)
    return {*named.globals, *named.attributes}


@functools.lru_cache(maxsize=4096)
def attributes_set_by(code: types.CodeType) -> frozenset[str]:
    """The attributes that code and its nested functions set or delete; every text, if it calls `setattr` or `vars`."""
    found: set[str] = set()
    for each in codes_in(code):
        found.update(step.argval for step in dis.get_instructions(each) if step.opname in _SETTING)
        if not _SETTERS.isdisjoint(each.co_names):
            found.update(constant for constant in each.co_consts if isinstance(constant, str))
    return frozenset(found)


def codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and those of nested functions."""
    yield code
    for inner in _inner(code):
        yield from codes_in(inner)


def _inner(code: types.CodeType) -> Iterator[types.CodeType]:
    return (constant for constant in code.co_consts if isinstance(constant, types.CodeType))


def _environment_key(asked: str, following: Sequence[dis.Instruction]) -> str | None:
    """The name that `os.environ["NAME"]`, `os.environ.get("NAME")` or `os.getenv("NAME")` is followed by.

    None if it is computed, as in `os.environ["NAME" + suffix]`: the lookup does not end after the text.
    """
    is_called = asked == "getenv"
    if following and following[0].argval == "get" and following[0].opname in _ATTRIBUTES:
        is_called, following = True, following[1:]
    match following:
        case [key, *rest] if key.opname == "LOAD_CONST" and isinstance(key.argval, str):
            return key.argval if _ends_lookup(rest, is_called=is_called) else None
    return None


def _ends_lookup(steps: Sequence[dis.Instruction], *, is_called: bool) -> bool:
    """Whether a subscript or a call follows at once, or a call behind one default."""
    if not is_called:
        return bool(steps) and _is_subscript(steps[0])
    if steps and steps[0].opname.startswith(_VALUES):
        steps = steps[1:]
    return bool(steps) and steps[0].opname == "CALL"


def _is_subscript(step: dis.Instruction) -> bool:
    return step.opname == "BINARY_SUBSCR" or (step.opname == "BINARY_OP" and step.argrepr == "[]")
