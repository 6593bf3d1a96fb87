"""Trial: one call of one spelling, with objects of a type and with dense tensors.

The call with dense tensors says what is right, whether it is random, and whether its result is a view.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch.utils._pytree import tree_leaves

from opwright.tensors.covering.calling import Call, Side, invoke, typed
from opwright.tensors.covering.calls.plan import Plan, other_of
from opwright.tensors.covering.calls.values import OTHER, SAMPLE
from opwright.tensors.covering.compare import difference, first_line, kinds, lost
from opwright.tensors.covering.memory import in_other_memory, is_stale
from opwright.tensors.covering.state import restored, state_of
from opwright.tensors.covering.subject import Subject
from opwright.tensors.spellings.table import Spelling

State = Literal["ok", "fails", "wrong"]

SIDES: tuple[Side, ...] = ("first", "second", "both")
_OF_THE_FIRST = frozenset({"expand_as", "module_load", "reshape_as", "resize_as", "resize_as_", "type_as", "view_as"})
"""Methods whose second tensor gives a shape or a dtype only; nothing of it travels."""
_OF_EACH = frozenset({"atleast_1d", "atleast_2d", "atleast_3d", "module_load"})
"""Functions whose results are each of one argument, which may be a plain one."""

_DOTTED = re.compile(r"\w+(?:\.\w+)+")
_OF_ARGUMENTS = r"keyword|combination of arguments|positional argument|multiple values"
_UNDEFINED = ("empty", "resize", "set_")


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a call.

    Attributes:
        state: "ok"; "fails", with the exception; or "wrong", with the difference from dense tensors.
        detail: The exception or the difference.
        kinds: The types of the results.
        value: The dense result, None if it failed.
        is_type_error: Whether it failed with a TypeError.
        is_own: Whether a result is of the type, or none is a tensor.
    """

    state: State
    detail: str = ""
    kinds: tuple[str, ...] = ()
    value: Any = None
    is_type_error: bool = False
    is_own: bool = False

    def refuses(self, name: str) -> bool:
        """Whether it failed because an argument was given, by what the TypeError says."""
        said = _DOTTED.sub("", self.detail)
        return bool(name) and self.is_type_error and bool(re.search(rf"\b{name}\b|{_OF_ARGUMENTS}", said))


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
            is_changed = bool(difference(subject, _untouched(subject, plan, own, side), dense))
            sample = subject.fresh() if spelling.is_in_place or is_changed else subject.sample
            before = state_of(sample)
            is_random = not _is_same(right, _right(spelling, dense, plan, side, seed=1)[0])
    except Exception:  # there is nothing to compare with
        return None
    args, kwargs = plan.filled(typed(sample, dense, side))
    try:
        with quiet():
            torch.default_generator.manual_seed(0)
            found = invoke(spelling, args, kwargs)
    except Exception as error:
        if sample is subject.sample:
            restored(subject, before)
        said = f"{type(error).__name__}: {first_line(error)}"
        return Trial("fails", said, is_type_error=isinstance(error, TypeError))
    with quiet():
        called, right_way = (found, args, sample), (right, own)
        said = restored(subject, before) if sample is subject.sample else ""
        trial = _judged(spelling, subject, plan, side, called, right_way, is_random=is_random)
        return replace(trial, state="wrong", detail=said) if said else trial


def _judged(
    spelling: Spelling,
    subject: Subject,
    plan: Plan,
    side: Side,
    called: tuple[Any, list[Any], Any],
    dense: tuple[Any, list[Any]],
    *,
    is_random: bool,
) -> Trial:
    (found, args, sample), (right, own) = called, dense
    has_values = not is_random and not any(word in spelling.name for word in _UNDEFINED)
    said = difference(subject, found, right, values=has_values)
    if not said and spelling.is_in_place and has_values:
        said = difference(subject, args[0], own[0])
        said = said and f"its argument: {said}"
    if not said and not spelling.is_in_place:
        changed = difference(subject, sample, _untouched(subject, plan, own, side))
        is_due = sample is not subject.sample
        said = changed and f"{'its argument after the call' if is_due else 'it changes its argument'}: {changed}"
    if not said:
        carried = not (side == "second" and (spelling.is_in_place or spelling.attribute in _OF_THE_FIRST))
        carried = carried and not (plan.given and spelling.family in _OF_EACH)
        is_given = any(found is one and right is other for one, other in zip(args, own, strict=True))
        said = lost(subject, found, right) if carried and not (is_given and found is not sample) else ""
    if not said and plan.args and plan.args[0] is SAMPLE and side != "second":
        call = Call(spelling, subject, plan, side)
        said = is_stale(call) if spelling.is_in_place else in_other_memory(call, found, right, own[0])
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
