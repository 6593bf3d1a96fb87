"""Table: every overridable function of PyTorch, with the family whose function it spells.

function → Spelling(name, family, is_swapped, is_in_place, is_attribute)

`torch.Tensor.__rsub__` is the function of the family "sub" with its first two arguments swapped, and
`torch.Tensor.sub_` the one that writes its result into the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from torch.overrides import get_overridable_functions, resolve_name

from opwright.tensors.spellings.aliases import ALIASES, IN_NN, OPERATORS, SAME_METHODS, SWAPPED, SWAPPED_NAMES

Function = Callable[..., Any]

_METHOD = "torch.Tensor."
_NN = "torch.nn.functional."
_GETTER = ".__get__"


@dataclass(frozen=True, slots=True)
class Spelling:
    """One name of a function.

    Attributes:
        function: What `__torch_function__` is given.
        name: Its full name, such as "torch.Tensor.__radd__".
        family: The name that all spellings of the function share, such as "add".
        is_swapped: Whether it takes the first two arguments in the other order.
        is_in_place: Whether it writes the result into the tensor that it is a method of.
        is_attribute: Whether it is read, not called: "torch.Tensor.shape.__get__".
    """

    function: Function
    name: str
    family: str
    is_swapped: bool = False
    is_in_place: bool = False
    is_attribute: bool = False

    @property
    def form(self) -> tuple[bool, bool]:
        """What distinguishes it from the family's plain function."""
        return self.is_swapped, self.is_in_place

    @property
    def is_method(self) -> bool:
        """Whether it is called on a tensor, as a method, operator or attribute."""
        return self.name.startswith(_METHOD)

    @property
    def attribute(self) -> str:
        """The name after the last dot, of an attribute that of the attribute."""
        return self.name.removesuffix(_GETTER).rpartition(".")[2]


@cache
def spellings() -> Mapping[Function, Spelling]:
    """All overridable functions of this PyTorch, sorted by name."""
    found = {function: resolve_name(function) for each in get_overridable_functions().values() for function in each}
    named = sorted((name, function) for function, name in found.items() if name)
    return MappingProxyType({function: _spelling(function, name) for name, function in named})


@cache
def families() -> Mapping[str, tuple[Spelling, ...]]:
    """The spellings of each family, the plain ones first."""
    groups: dict[str, list[Spelling]] = {}
    for spelling in spellings().values():
        groups.setdefault(spelling.family, []).append(spelling)
    return MappingProxyType({family: tuple(sorted(group, key=_order)) for family, group in groups.items()})


def spelling_of(function: Function) -> Spelling:
    """The spelling of a function, which PyTorch need not list as overridable."""
    name = resolve_name(function) or str(function)
    return spellings().get(function) or Spelling(function, name, name)


def _order(spelling: Spelling) -> tuple[bool, bool, bool, bool, str]:
    """The family's own function comes before its aliases, and what is called before what is read."""
    own = spelling.name == f"torch.{spelling.family}"
    return spelling.is_swapped, spelling.is_in_place, spelling.is_attribute, not own, spelling.name


def _spelling(function: Function, name: str) -> Spelling:
    if name.endswith(_GETTER):
        attribute = name.removesuffix(_GETTER).rpartition(".")[2]
        return Spelling(function, name, ALIASES.get(attribute, attribute), is_attribute=True)
    last = name.rpartition(".")[2]
    if name.startswith(_METHOD) and last.startswith("__"):
        return _of_operator(function, name, SAME_METHODS.get(last, last))
    base = _in_aten(function, name, last)
    is_in_place = name.startswith(_METHOD) and last.endswith("_")
    base = base.removesuffix("_") if is_in_place else base
    base = SWAPPED_NAMES.get(base, ALIASES.get(base, base))
    return Spelling(function, name, base, is_swapped=name in SWAPPED, is_in_place=is_in_place)


def _of_operator(function: Function, name: str, last: str) -> Spelling:
    word = last.strip("_")
    if word in OPERATORS:
        return Spelling(function, name, OPERATORS[word])
    if word[1:] in OPERATORS:
        return Spelling(
            function, name, OPERATORS[word[1:]], is_swapped=word.startswith("r"), is_in_place=word.startswith("i")
        )
    return Spelling(function, name, last)


def _in_aten(function: Function, name: str, last: str) -> str:
    """What ATen calls it: torch.linalg.inv is its linalg_inv, torch.foreach.add (PyTorch 2.15) its _foreach_add."""
    if name.startswith(_NN) and type(function).__name__ == "function" and last not in IN_NN:
        return f"nn.{last}"
    if name.startswith(("torch.linalg.", "torch.fft.", "torch.special.")):
        return str(getattr(function, "__name__", last))
    if name.startswith("torch.foreach."):
        return f"_foreach_{last}"
    return last
