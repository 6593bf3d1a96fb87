"""Measure: `coverage` tries every function of PyTorch with a type, in all its spellings.

family ─→ plan (a call that works on dense tensors) ─→ trials of each spelling, the type on either side ─→ entries
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

import torch

from opwright.errors import HandlerRefused, SamplesMissing
from opwright.tensors.covering.apart import each_apart
from opwright.tensors.covering.calling import Side
from opwright.tensors.covering.calls.aten import core_operations
from opwright.tensors.covering.calls.plan import Plan, plans, runs
from opwright.tensors.covering.report import CoverageReport, Entry, How
from opwright.tensors.covering.subject import Subject, is_dispatched, subject_of
from opwright.tensors.covering.trial import SIDES, Trial, applies, quiet, tried
from opwright.tensors.spellings.overloads import Overload, overloads
from opwright.tensors.spellings.table import Spelling, families
from opwright.tensors.wrapper.base import Wrapper

_LEFT_OUT = frozenset(
    {
        "__cuda_array_interface__",
        "__deepcopy__",
        "__dlpack__",
        "__dlpack_device__",
        "__reduce_ex__",
        "__repr__",
        "__setstate__",
        "_cdata",
        "_is_view",
        "_version",
        "autocast",
        "backward",
        "const_data_ptr",
        "cuda",
        "data_ptr",
        "hpu",
        "ipu",
        "is_set_to",
        "mtia",
        "pin_memory",
        "set_",
        "share_memory_",
        "storage",
        "untyped_storage",
        "xpu",
    }
)
"""Functions without a value to compare, or that a machine may not have."""

Found = dict[tuple[Side, str, str], Trial]
Group = Sequence[tuple[Spelling, tuple[Overload, ...]]]


def coverage(
    type_: type,
    samples: Sequence[Any],
    *,
    dense: Callable[[Any], torch.Tensor] | None = None,
    metadata: Sequence[str] | None = None,
    only: Sequence[str] = (),
    isolate: bool = False,
) -> CoverageReport:
    """Try every overridable function of PyTorch with a type, and compare with what dense tensors give.

    Each function is called with the first sample that a call was found for, with the sample as its first tensor, as
    its second, and as both; then with each optional argument. Nothing is known of the type but its objects: it may be
    a `Like`, a `Wrapper`, or a type made elsewhere.

    Args:
        type_: The type.
        samples: Objects of it. Small square matrices of positive floats suit the most functions.
        dense: Makes a plain tensor of an object; if it is not given, `densify`, `full_tensor` or `dequantize` of the
            type, the one tensor of a Wrapper, or the memory of a subclass of Tensor.
        metadata: Attributes that all results must have, with the sample's values; those of a Wrapper if not given.
        only: Names of families to try, such as "add"; all if there are none.
        isolate: Call functions in a forked process, for types that end the process in some: these are "fails" then.

    Raises:
        SamplesMissing: There is no sample.
        HandlerRefused: A sample is not of the type or lacks metadata, nothing makes a tensor of it, or a family is
            unknown.
    """
    if not isinstance(type_, type):
        raise HandlerRefused(f"a {type(type_).__name__} is no type", hint="give its class, and the object in samples=")
    if isinstance(samples, type_):
        samples = [samples]
    if not samples:
        raise SamplesMissing(f"there is no sample of {type_.__name__}", hint="give objects of the type: samples=[...]")
    only = (only,) if isinstance(only, str) else only
    if unknown := [name for name in only if name not in families()]:
        raise HandlerRefused(
            f"only= has {unknown[0]!r}, which is no function", hint='names are those of families, such as "add"'
        )
    subjects = [subject_of(type_, sample, dense, metadata) for sample in samples]
    groups: list[Group] = [
        [(each, overloads(each.function)) for each in group]
        for family, group in families().items()
        if not only or family in only
    ]
    if is_dispatched(type_) and not only:
        groups += [[each] for each in core_operations()]
    with quiet():
        found = _each_apart(subjects, groups) if isolate else [_of_family(subjects, group) for group in groups]
        entries = [entry for group in found for entry in group]
    return CoverageReport(type_.__name__, tuple(sorted(entries, key=lambda entry: (_is_aten(entry), entry.name))))


def _is_aten(entry: Entry) -> bool:
    return entry.name.startswith("aten.")


def _each_apart(subjects: Sequence[Subject], groups: Sequence[Group]) -> Iterator[Sequence[Entry]]:
    def work(group: Group, begin: Callable[[str], None], ended: Mapping[str, str]) -> list[dict[str, Any]]:
        return [asdict(entry) for entry in _of_family(subjects, group, begin, ended)]

    for found in each_apart(work, groups):
        yield [Entry(**entry) for entry in found]


def _of_family(
    subjects: Sequence[Subject],
    group: Group,
    begin: Callable[[str], None] = lambda name: None,
    ended: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Entry]:
    """The entries of spellings of one function.

    Args:
        subjects: The samples.
        group: The spellings.
        begin: Called with the name of each spelling before it is.
        ended: The spellings that are not called, because that ended the process, and how.
    """
    found: dict[Spelling, Found] = {}
    for spelling, _ in group:
        if spelling.attribute not in _LEFT_OUT and spelling.name not in ended:
            begin(spelling.name)
            subject, planned = _planned(subjects, spelling, group)
            if planned:
                found[spelling] = dict(_trials(subject, spelling, planned))
    for spelling, _ in group:
        trials = found.get(spelling, {})
        if spelling.name in ended:
            yield Entry(spelling.name, spelling.family, "fails", f"it ends the process: {ended[spelling.name]}")
            continue
        if not trials:
            yield Entry(spelling.name, spelling.family, "not tried")
            continue
        lacking = _lacking(subjects[0].type, spelling, trials)
        how, detail = _how(subjects[0].type, spelling, trials, lacking)
        alike = {other: its for other, its in found.items() if other.is_in_place == spelling.is_in_place}
        others = {other: its for other, its in alike.items() if other is not spelling}
        signature = f"does not take {', '.join(lacking)}" if lacking else ""
        yield Entry(spelling.name, spelling.family, how, detail, _disagreement(trials, others), signature)


def _planned(subjects: Sequence[Subject], spelling: Spelling, group: Group) -> tuple[Subject, Sequence[Plan]]:
    """The first sample that there is a call for, and the calls: those of the family, or the spelling's own."""
    plain, known = group[0]
    for subject in subjects:
        dense = subject.dense(subject.sample)
        shared = [_turned(plan, spelling, plain) for plan in plans(plain.function, known, dense)]
        working = [plan for plan in shared if plan is not None and runs(spelling.function, plan, dense)]
        if working and working[0].given == "":
            return subject, working
        own = dict(group)[spelling]
        if found := plans(spelling.function, own, dense):
            return subject, found
    return subjects[0], ()


def _turned(plan: Plan, spelling: Spelling, plain: Spelling) -> Plan | None:
    if spelling.is_swapped == plain.is_swapped:
        return plan
    return plan.swapped() if len(plan.args) > 1 else None


def _trials(subject: Subject, spelling: Spelling, planned: Sequence[Plan]) -> Iterator[tuple[Any, Trial]]:
    """Trials by side, added argument, and the plan in the family's order."""
    for plan in planned:
        if plan.given and spelling.attribute.startswith("__"):
            continue  # an operator has no keywords
        ordered = plan.swapped() if spelling.is_swapped else plan
        for side in SIDES if not plan.given else SIDES[:1]:
            if applies(spelling, subject, plan, side) and (trial := tried(spelling, subject, plan, side)):
                yield (side, plan.given, repr(ordered)), trial


def _how(type_: type, spelling: Spelling, trials: Mapping[Any, Trial], lacking: Sequence[str]) -> tuple[How, str]:
    plain = {key: trial for key, trial in trials.items() if not key[1]} or trials
    for (side, given, _), trial in trials.items():
        if trial.state == "wrong":
            return "wrong", _said(side, given, trial)
    for (side, given, _), trial in trials.items():
        if trial.state == "fails" and given not in lacking:
            others = [other.state for key, other in plain.items() if key[0] != "first"]
            where = "as the first tensor: " if side == "first" and not given and "ok" in others else ""
            return "fails", where + _said(side, given, trial)
    served = getattr(type_, "served_by", None)
    if served is not None:
        how: How = served(spelling.function)
        return how, ""
    if issubclass(type_, Wrapper):
        return "by rule", ""
    return ("handled" if all(trial.is_own for trial in plain.values()) else "fallback"), ""


def _said(side: Side, given: str, trial: Trial) -> str:
    where = {"first": "", "second": "as the second tensor: ", "both": "as both tensors: "}[side]
    return f"{where}with {given}=: {trial.detail}" if given else f"{where}{trial.detail}"


def _lacking(type_: type, spelling: Spelling, trials: Mapping[Any, Trial]) -> Sequence[str]:
    """Which arguments are refused although the call without them works, or are known not to be taken."""
    works = any(trial.state == "ok" for key, trial in trials.items() if key[0] == "first" and not key[1])
    refused = [key[1] for key, trial in trials.items() if works and trial.refuses(key[1])]
    lacking = getattr(type_, "lacking", None)
    known = lacking(spelling.function) if lacking is not None else ()
    return list(dict.fromkeys([*refused, *known]))


def _disagreement(own: Mapping[Any, Trial], others: Mapping[Spelling, Mapping[Any, Trial]]) -> str:
    """The first difference from another spelling, in the same call with the type on the same side."""
    for other, its in others.items():
        for key in (key for key in own if key in its):
            one, another = own[key], its[key]
            if (one.state == "fails") != (another.state == "fails"):
                return f"{'fails' if one.state == 'fails' else 'works'}, {other.name} does not"
            if one.state != another.state:
                return f"{'is' if one.state == 'wrong' else 'is not'} wrong, unlike {other.name}"
            if one.kinds != another.kinds:
                return f"gives {', '.join(one.kinds)}, {other.name} gives {', '.join(another.kinds)}"
    return ""
