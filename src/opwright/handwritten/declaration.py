"""Read the function declarations in C++ and CUDA sources: names, types, lines.

This reader only parses the heads of functions, so that a wrong name or parameter is reported with its line before
anything is compiled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from opwright.errors import Place

_COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
_HEAD = re.compile(r"(?<![\w:.>])([A-Za-z_]\w*)\s*\(")
_BEHIND = re.compile(r"\s*(?:noexcept\b|const\b|->[^{;]*)*\s*\{")
_TEMPLATE = re.compile(r"template\s*<([^>]*)>")
_TYPE_PARAMETER = re.compile(r"^(?:typename|class)\s+(\w+)")
_ATTRIBUTE = re.compile(
    r"__attribute__\s*\(\(.*?\)\)|\[\[.*?\]\]|__launch_bounds__\s*\([^)]*\)|"
    r'\b(?:extern|static|inline|constexpr|__restrict__|__restrict|__host__|__device__|__global__|TORCH_API)\b|"\s*"'
)
_NOT_FUNCTIONS = frozenset({"if", "for", "while", "switch", "catch", "return", "defined", "sizeof", "decltype"})


@dataclass(frozen=True, slots=True)
class CppParameter:
    """A parameter of a function.

    Attributes:
        name: Its name; empty if it has none.
        type: Its type without `const`, `*`, `&` and the namespaces of torch, std and opwright.
        spelling: The same with its namespaces.
        is_pointer: Whether it is a pointer.
        is_const: Whether it, or what it points to, is constant.
    """

    name: str
    type: str
    spelling: str
    is_pointer: bool = False
    is_const: bool = False


@dataclass(frozen=True, slots=True)
class Declaration:
    """The head of a function definition.

    Attributes:
        name: Its name, without namespaces.
        returns: The type it returns.
        parameters: Its parameters, in order.
        place: The file and line of the definition.
        type_parameters: The type parameters of a template.
        is_cuda_kernel: Whether it is a `__global__` function.
    """

    name: str
    returns: str
    parameters: tuple[CppParameter, ...]
    place: Place
    type_parameters: tuple[str, ...] = ()
    is_cuda_kernel: bool = False

    @property
    def is_torch_facing(self) -> bool:
        """Whether it takes or returns tensors; a kernel takes pointers and numbers."""
        return any("Tensor" in parameter.type for parameter in self.parameters) or "Tensor" in self.returns


def read_declarations(text: str, file: str) -> tuple[Declaration, ...]:
    """The heads of all functions that a source defines, in order.

    Args:
        text: The source.
        file: The name of the source in file-and-line places.
    """
    return tuple(_declarations(_blanked(text), file))


def _blanked(text: str) -> str:
    """The text without comments, strings and directives; every line keeps its number."""
    text = _COMMENT_OR_STRING.sub(lambda found: '""' if found[0].startswith('"') else _lines_of(found[0]), text)
    return _DIRECTIVE.sub(lambda found: _lines_of(found[0]), text)


def _lines_of(text: str) -> str:
    return "\n" * text.count("\n") or " "


def _declarations(text: str, file: str) -> Iterator[Declaration]:
    for head in _HEAD.finditer(text):
        name = head[1]
        end = _closing(text, head.end())
        if name in _NOT_FUNCTIONS or end is None or not _BEHIND.match(text, end + 1):
            continue
        before = _words_before(text, head.start())
        template = _TEMPLATE.search(before)
        returns = _plain_type(_TEMPLATE.sub("", before))
        if not returns or re.search(r"[=()!&|?]|\b(?:return|else|new|namespace|struct|class)\b", returns):
            continue
        yield Declaration(
            name,
            returns,
            tuple(_parameter(given) for given in _split(text[head.end() : end]) if given.strip() not in ("", "void")),
            Place(file, text.count("\n", 0, head.start()) + 1),
            _type_parameters(template[1]) if template else (),
            "__global__" in before,
        )


def _closing(text: str, position: int) -> int | None:
    """The position of the parenthesis that closes the one opened before `position`."""
    depth = 1
    for place in range(position, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    return None


def _words_before(text: str, position: int) -> str:
    """The text between the end of the previous statement and a function's name."""
    start = max(text.rfind(mark, 0, position) for mark in ";{}")
    return text[start + 1 : position].strip()


def _split(parameters: str) -> list[str]:
    """Split at the commas outside of brackets."""
    found, depth = [""], 0
    for letter in parameters:
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return found


def _parameter(text: str) -> CppParameter:
    text = text.partition("=")[0].strip()
    named = re.fullmatch(r"(.*[\s*&>])(\w+)\s*(\[\s*\w*\s*\])?", text, re.DOTALL)
    kind, name, array = (named[1], named[2], named[3]) if named else (text, "", None)
    is_const = re.search(r"\bconst\b", kind) is not None
    return CppParameter(name, _plain_type(kind), _spelling(kind), "*" in kind or array is not None, is_const)


def _plain_type(text: str) -> str:
    return re.sub(r"\b(?:std|torch|at|c10|opwright|stable)::", "", _spelling(text))


def _spelling(text: str) -> str:
    return " ".join(re.sub(r"[*&]|\bconst\b", " ", _ATTRIBUTE.sub(" ", text)).split())


def _type_parameters(text: str) -> tuple[str, ...]:
    found = (_TYPE_PARAMETER.match(part.strip()) for part in text.split(","))
    return tuple(match[1] for match in found if match)
