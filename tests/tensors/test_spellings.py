"""Which functions are one: every overridable function has a family, and members of a family compute the same."""

from __future__ import annotations

import re

import pytest
import torch
from torch.overrides import get_overridable_functions

from opwright.tensors.spellings.overloads import overloads, takes_many
from opwright.tensors.spellings.table import families, spelling_of, spellings

ALIAS = re.compile(r"[Aa]lias (?:for|of) :(?:func|meth|attr):`~?([\w.]+)`")
NOT_THE_SAME = {
    "torch.linalg.diagonal": "other dimensions than torch.diagonal by default",
    "torch.linalg.matrix_rank": "an alias of one parameter for another",
    "torch.linalg.pinv": "an alias of one parameter for another",
    "torch.pinverse": "rcond is positional, and has another default",
}
PAIRS = (
    (torch.add, torch.Tensor.__radd__, (True, False)),
    (torch.sub, torch.rsub, (True, False)),
    (torch.sub, torch.Tensor.__rsub__, (True, False)),
    (torch.sub, torch.Tensor.__isub__, (False, True)),
    (torch.div, torch.Tensor.__rtruediv__, (True, False)),
    (torch.remainder, torch.Tensor.__rmod__, (True, False)),
    (torch.pow, torch.Tensor.__ipow__, (False, True)),
    (torch.where, torch.Tensor.where, (True, False)),
    (torch.polygamma, torch.Tensor.polygamma_, (True, True)),
    (torch.cat, torch.concatenate, (False, False)),
    (torch.linalg.inv, torch.Tensor.inverse, (False, False)),
    (torch.nn.functional.softmax, torch.special.softmax, (False, False)),
    (torch.Tensor.dim, torch.Tensor.ndim.__get__, (False, False)),
)


def test_every_overridable_function_has_a_family():
    listed = {function for each in get_overridable_functions().values() for function in each}
    assert set(spellings()) == listed
    assert sum(map(len, families().values())) == len(listed)


def test_functions_that_the_documentation_calls_aliases_are_of_one_family():
    by_name = {spelling.name: spelling for spelling in spellings().values()}
    apart = []
    for spelling in spellings().values():
        said = ALIAS.search(spelling.function.__doc__ or "")
        other = said and (by_name.get(said[1]) or by_name.get(f"torch.{said[1]}"))
        if other and other.family != spelling.family and spelling.name not in NOT_THE_SAME:
            apart.append((spelling.name, other.name))
    assert apart == []


@pytest.mark.parametrize(("plain", "other", "form"), PAIRS, ids=lambda each: getattr(each, "__name__", str(each)))
def test_a_spelling_has_its_form(plain, other, form):
    assert spelling_of(other).family == spelling_of(plain).family
    assert spelling_of(other).form == form


def test_an_operation_and_another_of_the_same_name_are_apart():
    for one, other in ((torch.linalg.norm, torch.norm), (torch.nn.functional.dropout, torch.dropout)):
        assert spelling_of(one).family != spelling_of(other).family


def _call(spelling, x, y):
    """A spelling of a function of one or two tensors, called in the family's order."""
    first = x.clone()
    given = (y, first) if spelling.is_swapped else (first, y)
    given = (given[0].clone(), *given[1:]) if spelling.is_in_place else given
    result = spelling.function(*given)
    assert not spelling.is_in_place or result is given[0], spelling.name
    return result


@pytest.mark.parametrize(
    "family", ["add", "sub", "mul", "div", "floor_divide", "remainder", "pow", "lt", "ne", "atan2"]
)
def test_spellings_of_two_arguments_compute_the_same(family):
    x, y = torch.tensor([3.0, 5.0, 2.0]), torch.tensor([2.0, 7.0, 2.0])
    plain, *others = families()[family]
    right = plain.function(x, y)
    for other in others:
        found = _call(other, x, y)
        torch.testing.assert_close(found.to(right.dtype), right, msg=other.name)


def test_spellings_of_one_argument_compute_the_same():
    x = torch.rand(3, 3, dtype=torch.float64) + 0.1
    tried = 0
    for group in families().values():
        known = [spelling for spelling in group if not spelling.is_attribute and len(group) > 1]
        if not known or any(len(each.parameters) != 1 for one in known for each in overloads(one.function)):
            continue
        try:
            plain = known[0].function(x.clone())
        except (RuntimeError, TypeError, ValueError):  # of another shape or dtype
            continue
        if not isinstance(plain, torch.Tensor) or known[0].family == "bernoulli":
            continue
        for other in known[1:]:
            found = other.function(x.clone()).to(plain.dtype)  # in place, results keep the dtype of the argument
            torch.testing.assert_close(found, plain, equal_nan=True, msg=other.name)
            tried += 1
    assert tried > 100


def test_overloads_are_those_of_the_schemas():
    names = {parameter.name for each in overloads(torch.mean) for parameter in each.parameters}
    assert names == {"self", "dim", "keepdim", "dtype"}
    (alpha,) = {each.by_name for each in overloads(torch.Tensor.__radd__)}
    assert [parameter.name for parameter in alpha] == ["alpha"]
    unknown = [spelling.name for spelling in spellings().values() if not overloads(spelling.function)]
    assert unknown == ["torch.autocast"]


def test_methods_that_take_numbers_one_by_one():
    assert takes_many(torch.Tensor.permute)
    assert not takes_many(torch.permute)
    assert not takes_many(torch.Tensor.add)
