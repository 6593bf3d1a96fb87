"""Trial: one call of one spelling, with objects of a type and with dense tensors.

The call with dense tensors says what is right, whether it is random, and whether its result is a view.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch.utils._pytree import tree_leaves

from opwright.tensors.coverage.compare import difference, first_line, kinds, lost
from opwright.tensors.coverage.plan import Plan, other_of
from opwright.tensors.coverage.subject import Subject
from opwright.tensors.coverage.values import OTHER, SAMPLE
from opwright.tensors.spellings.aliases import OPERATORS
from opwright.tensors.spellings.table import Spelling

State = Literal["ok", "fails", "wrong"]
Side = Literal["first", "second", "both"]

SIDES: tuple[Side, ...] = ("first", "second", "both")
_MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
_OF_THE_FIRST = frozenset({"expand_as", "module_load", "reshape_as", "resize_as_", "type_as", "view_as"})
"""Methods whose second tensor gives a shape or a dtype only; nothing of it travels."""

_UNDEFINED = ("empty", "resize", "set_")


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a call.

    Attributes:
        state: "ok"; "fails", with the exception; or "wrong", with the difference from dense tensors.
        detail: The exception or the difference.
        kinds: The types of the results.
        value: The dense result, None if it failed.
        is_type_error: Whether it failed with a TypeError, as calls with an unknown argument do.
        is_own: Whether a result is of the type, or none is a tensor.
    """

    state: State
    detail: str = ""
    kinds: tuple[str, ...] = ()
    value: Any = None
    is_type_error: bool = False
    is_own: bool = False


def invoke(spelling: Spelling, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Call a spelling as a user does: methods on their object, so that a type's own methods are called."""
    if not spelling.is_method:
        return spelling.function(*args, **kwargs)
    if spelling.is_attribute:
        return getattr(args[0], spelling.attribute)
    result = getattr(args[0], spelling.attribute)(*args[1:], **kwargs)
    return _of_the_other(spelling.attribute, args) if result is NotImplemented else result


def _of_the_other(attribute: str, args: list[Any]) -> Any:
    """What Python does with an operator whose first method returns NotImplemented: the second's has its turn.

    Raises:
        TypeError: It has none, or this returns NotImplemented too.
    """
    word = attribute.strip("_")
    plain = word.removeprefix("i") if word.removeprefix("i") in OPERATORS else word
    partner = _MIRRORED.get(plain) or (plain[1:] if plain not in OPERATORS else f"r{plain}")
    method = getattr(args[1], f"__{partner}__", None) if len(args) > 1 else None
    result = method(args[0]) if method is not None else NotImplemented
    if result is NotImplemented:
        raise TypeError(f"{type(args[0]).__name__}.{attribute} returns NotImplemented")
    return result


def applies(spelling: Spelling, subject: Subject, plan: Plan, side: Side) -> bool:
    """Whether a call can be made: both tensors are there, and the first has the method."""
    if side != "first" and OTHER not in plan.places:
        return False
    first = plan.args[0] if plan.args else None
    is_on_object = (first is SAMPLE and side != "second") or (first is OTHER and side != "first")
    if spelling.is_method and is_on_object and not issubclass(subject.type, torch.Tensor):
        return spelling.attribute in dir(subject.type) or hasattr(subject.type, "implements")
    return True


def tried(spelling: Spelling, subject: Subject, plan: Plan, side: Side) -> Trial | None:
    """Call a spelling with the sample on a side; None if the call does not work with dense tensors there."""
    dense = subject.dense(subject.sample)
    try:
        with quiet():
            right, own = _right(spelling, dense, plan, side)
            sample = subject.fresh() if spelling.is_in_place else subject.sample
            is_random = not _is_same(right, _right(spelling, dense, plan, side, seed=1)[0])
    except Exception:  # there is nothing to compare with
        return None
    args, kwargs = plan.filled(_typed(sample, dense, side))
    try:
        with quiet():
            torch.default_generator.manual_seed(0)
            found = invoke(spelling, args, kwargs)
    except Exception as error:
        said = f"{type(error).__name__}: {first_line(error)}"
        return Trial("fails", said, is_type_error=isinstance(error, TypeError))
    with quiet():
        return _judged(spelling, subject, plan, side, (found, args, sample), (right, own), is_random=is_random)


def _judged(
    spelling: Spelling,
    subject: Subject,
    plan: Plan,
    side: Side,
    typed: tuple[Any, list[Any], Any],
    dense: tuple[Any, list[Any]],
    *,
    is_random: bool,
) -> Trial:
    (found, args, sample), (right, own) = typed, dense
    has_values = not is_random and not any(word in spelling.name for word in _UNDEFINED)
    said = difference(subject, found, right, values=has_values)
    if not said and spelling.is_in_place and has_values:
        said = difference(subject, args[0], own[0])
        said = said and f"its argument: {said}"
    if not said and not spelling.is_in_place:
        changed = difference(subject, sample, _untouched(subject, plan, own, side))
        said = changed and f"it changes its argument: {changed}"
    if not said:
        carried = not (side == "second" and (spelling.is_in_place or spelling.attribute in _OF_THE_FIRST))
        said = (carried and lost(subject, found, right)) or _is_copy(spelling, subject, plan, side, found, right, own)
    leaves = [leaf for leaf in tree_leaves(found) if isinstance(leaf, (torch.Tensor, subject.type))]
    is_own = not leaves or any(isinstance(leaf, subject.type) for leaf in leaves)
    value = subject.dense(found) if not said.startswith("its result cannot") else None
    return Trial("wrong" if said else "ok", said, tuple(kinds(found)), value, is_own=is_own)


def _untouched(subject: Subject, plan: Plan, own: list[Any], side: Side) -> Any:
    """What the sample stands for after the dense call, which need not have left it alone."""
    wanted = OTHER if side == "second" else SAMPLE
    for position, each in enumerate(plan.args):
        if each is wanted:
            return own[position]
    return subject.dense(subject.sample)


def _is_copy(
    spelling: Spelling, subject: Subject, plan: Plan, side: Side, found: Any, right: Any, own: list[Any]
) -> str:
    """Whether the dense result is a view of its first argument and the type's is not: writing tells."""
    is_view = isinstance(right, torch.Tensor) and isinstance(own[0], torch.Tensor) and right is not own[0]
    if not is_view or not isinstance(found, subject.type) or spelling.is_in_place or side == "second":
        return ""
    if right.layout is not torch.strided or own[0].layout is not torch.strided or not right.numel():
        return ""
    if right.untyped_storage().data_ptr() != own[0].untyped_storage().data_ptr():
        return ""
    if not plan.args or plan.args[0] is not SAMPLE:
        return ""
    try:
        sample = subject.fresh()
        args, kwargs = plan.filled(_typed(sample, subject.dense(sample), side))
        with torch.no_grad():
            before = subject.dense(sample).clone()
            invoke(spelling, args, kwargs).zero_()
            after = subject.dense(sample)
    except Exception:  # the type cannot be written to
        return ""
    right.detach().zero_()
    if torch.equal(before, own[0].detach()):
        return ""
    return "its result is a copy, not a view" if torch.equal(before, after) else ""


def _typed(sample: Any, dense: torch.Tensor, side: Side) -> dict[Any, Any]:
    return {
        SAMPLE: sample if side != "second" else dense.clone(),
        OTHER: sample if side != "first" else other_of(dense),
    }


def _right(spelling: Spelling, dense: torch.Tensor, plan: Plan, side: Side, seed: int = 0) -> tuple[Any, list[Any]]:
    """The dense result, and the arguments after the call."""
    first = dense.detach().clone()
    same = first if side == "both" else dense.detach().clone() if side == "second" else other_of(dense)
    args, kwargs = plan.filled({SAMPLE: first, OTHER: same})
    torch.default_generator.manual_seed(seed)
    return spelling.function(*args, **kwargs), args


def _is_same(one: Any, other: Any) -> bool:
    pairs = zip(tree_leaves(one), tree_leaves(other), strict=False)
    return all(
        not isinstance(left, torch.Tensor)
        or (left.shape == right.shape and bool(((left == right) | (left != left)).all()))
        for left, right in pairs
        if not (isinstance(left, torch.Tensor) and (left.layout is not torch.strided or left.is_quantized))
    )


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings of functions that nobody asked for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
