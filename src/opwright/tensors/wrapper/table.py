"""Which rule a type has for an operation: the most special one of the most derived class that has any."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch._ops import OpOverload, OpOverloadPacket

from opwright.errors import WrapperRefused
from opwright.tensors.wrapper.opening import Args, Held, Kwargs, Operation
from opwright.tensors.wrapper.rules import RULES, Rule, by_function, rewrap

_COPIES = frozenset({"aten::detach", "aten::alias", "aten::clone", "aten::lift_fresh"})


def keys_of(what: Any) -> tuple[str, ...]:
    """The keys under which rules for it are looked for, the most special one first.

    Args:
        what: An operation of `torch.ops` with or without its overload, a namespace of them, an operator, or the name of
            one.

    Raises:
        WrapperRefused: If it is something else.
    """
    if isinstance(what, OpOverload):
        operation = what._schema.name
        return f"{operation}.{what._overloadname}", operation, operation.split("::")[0]
    name: Any = what if isinstance(what, str) else getattr(what, "_qualified_op_name", getattr(what, "name", None))
    if isinstance(what, str) and "::" not in what:
        raise WrapperRefused(
            f"{what!r} is no operation that a rule can be for",
            hint="name an operation of torch.ops, such as torch.ops.aten.mul, or an operator; the rule comes first: "
            'rule("rewrap", torch.ops.aten)',
        )
    if isinstance(what, (str, OpOverloadPacket, torch._ops._OpNamespace)) or (callable(what) and "::" in str(name)):
        return (name, name.split("::")[0]) if "::" in str(name) else (str(name),)
    raise WrapperRefused(
        f"{what!r} is no operation that a rule can be for",
        hint="name one of torch.ops, such as torch.ops.aten.mul, or an operator; torch functions are made of these",
    )


def read_rule(rule: Any) -> Rule:
    """A rule as it is given: its name, a function or an operator.

    Raises:
        WrapperRefused: If there is none of that name.
    """
    if isinstance(rule, str):
        if rule not in RULES:
            raise WrapperRefused(f"there is no rule {rule!r}", hint=f"the rules are {', '.join(RULES)}, or a function")
        return RULES[rule]
    if not callable(rule):
        raise WrapperRefused(f"{rule!r} is no rule", hint="give the name of one, or a function")
    return by_function(rule)


def rule_for(tables: Iterable[dict[str, Rule]], keys: Sequence[str]) -> Rule | None:
    """The first rule in the tables of a class and its bases."""
    for table in tables:
        for key in keys:
            if key in table:
                return table[key]
    return None


def default_rule(kind: type[Held], otherwise: Rule, keys: Sequence[str]) -> Rule:
    """The rule for what a type says nothing about.

    Around one tensor every operation is run inside. Around several, what copies is; all else would be a guess at what
    they mean, and goes by another rule: on the dense tensor, where the type can make one.
    """
    if len(kind.names.data) == 1:
        return as_numbers if "aten::view_as_real" in keys else rewrap
    if "aten::copy_" in keys:
        return copy_each
    if not _COPIES.isdisjoint(keys):
        return rewrap
    if "aten::_to_copy" in keys:
        return convert
    return otherwise


def copy_each(kind: type[Held], operation: Operation, args: Args, kwargs: Kwargs) -> Any:
    """`copy_` between wrappers around several tensors.

    Raises:
        WrapperRefused: For a source that is no such wrapper: what each tensor gets of it is not ours to guess.
    """
    if any(not isinstance(value, Held) for value in args[:2]):
        raise WrapperRefused(
            f"{kind.__name__} holds several tensors, and cannot be copied to or from a plain one",
            hint=f"{kind.__name__}.rule(function, torch.ops.aten.copy_)",
        )
    return rewrap(kind, operation, args, kwargs)


def as_numbers(kind: type[Held], operation: Operation, args: Args, kwargs: Kwargs) -> Any:
    """`view_as_real`, and so `.real` and `.imag`, which torch has for tensors that are not conjugated lazily.

    Raises:
        WrapperRefused: Of one that is; torch cannot see that of the wrapper, and would not resolve it.
    """
    inside = getattr(args[0], kind.names.data[0]) if isinstance(args[0], kind) else None
    if inside is not None and inside.is_conj():
        raise WrapperRefused(
            f"{kind.__name__} is conjugated, and has no view of its real and imaginary parts",
            hint="clone() it first: that conjugates its values",
        )
    return rewrap(kind, operation, args, kwargs)


def convert(kind: type[Held], operation: Operation, args: Args, kwargs: Kwargs) -> Any:
    """`_to_copy` of several tensors: only those of the dtype that the wrapper shows get another."""
    wrapper: Any = args[0]
    options = {name: value for name, value in kwargs.items() if name != "dtype"}
    data = [getattr(wrapper, name) for name in wrapper.names.data]
    converted = [operation(tensor, **(kwargs if tensor.dtype == wrapper.dtype else options)) for tensor in data]
    return kind.made(converted, kind.metadata_of([wrapper]))
