"""named_sizes: a Program → the same with a name for each size that it computes, used wherever that size is needed.

Call y[x_size_0, (x_size_1 - 3) // 2 + 1], Kernel axes x_size_0, (x_size_1 - 3) // 2 + 1
becomes  y_size_1 = (x_size_1 - 3) // 2 + 1; Call y[x_size_0, y_size_1], Kernel axes x_size_0, y_size_1
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from opwright.ir.expressions.integer import Integer, replace_atoms
from opwright.ir.program import Program, size_symbol, targets_of
from opwright.ir.relations.spans import is_size
from opwright.ir.symbols import map_integers

_FEWEST_TERMS = 3  # of sums that named sizes shorten


def named_sizes(program: Program) -> tuple[Program, tuple[tuple[str, Integer], ...]]:
    """Name the computed sizes of the steps' results; give each name with its value, which may use earlier names.

    Guards are not rewritten: they are tested before anything is computed.
    """
    names: dict[Integer, Integer] = {}
    values: list[tuple[str, Integer]] = []
    for step in program.steps:
        for target in targets_of(step):
            for dimension, size in enumerate(target.shape):
                if size in names or size.constant is not None or is_size(size):
                    continue
                name = size_symbol(target.name, dimension)
                values.append((str(name), _spelled(size, names)))
                names[size] = name
    spelled = map_integers(program, lambda size: _spelled(size, names))
    return replace(spelled, guards=program.guards), tuple(values)


def _spelled(size: Integer, names: Mapping[Integer, Integer]) -> Integer:
    """A size by its name, or a long sum shortened by the names of others."""
    if size in names:
        return names[size]
    if len(size.terms) < _FEWEST_TERMS:
        return size
    shorter = (again for whole, name in names.items() for again in _in_terms_of(size, whole, name))
    return next((_spelled(each, names) for each in shorter if len(each.terms) < len(size.terms)), size)


def _in_terms_of(size: Integer, whole: Integer, name: Integer) -> Iterable[Integer]:
    """A size after solving `whole == name` for one of its terms and substituting that."""
    for monomial, coefficient in whole.terms:
        if len(monomial) == 1 and abs(coefficient) == 1:
            term = Integer(((monomial, 1),))
            yield replace_atoms(size, {term: term + (name - whole) * coefficient})
