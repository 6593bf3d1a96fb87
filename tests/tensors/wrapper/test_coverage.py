"""Coverage reports faults that authors of wrappers make, and none on a faultless one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from opwright.tensors import coverage
from tests.tensors.wrapped import Meta

aten = torch.ops.aten


def sample(kind: Any) -> Any:
    return kind(torch.rand(3, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 0.2, "me")


def _inside(value: Any) -> Any:
    return value.elem if isinstance(value, Meta) else value


def _another_inside(x: Any, y: Any) -> Any:
    x.elem = x.elem * _inside(y)
    return x


FAULTS: dict[str, tuple[str, Any, Callable[[Any], Any], str]] = {
    # name: (family, operation, rule of a type, what is said)
    "view that is a copy": (
        "transpose",
        aten.transpose.int,
        lambda kind: lambda x, *dims: kind(x.elem.transpose(*dims).clone(), x.owner),
        "its result is a copy, not a view",
    ),
    "copy that is a view": (
        "clone",
        aten.clone.default,
        lambda kind: lambda x, **how: kind(x.elem, x.owner),
        "its result lies in the memory of its argument, where it should be a copy",
    ),
    "stale tensor inside of views": (
        "mul",
        aten.mul_.Tensor,
        lambda kind: _another_inside,
        "a view that was made before does not see the change",
    ),
    "change that does not happen": ("add", aten.add_.Tensor, lambda kind: lambda x, y: x, "values differ"),
    "lost metadata": ("exp", aten.exp.default, lambda kind: "reduction", "the result is a Tensor, without owner"),
    "other metadata": (
        "sqrt",
        aten.sqrt.default,
        lambda kind: lambda x: kind(x.elem.sqrt(), "another"),
        "owner is 'another', not 'me'",
    ),
    "other values": ("tanh", aten.tanh.default, lambda kind: lambda x: kind(x.elem.tanh() * 1.01, x.owner), "differ"),
    "wrapped as the second only": (
        "atan2",
        aten.atan2.default,
        lambda kind: lambda x, y: kind(torch.atan2(_inside(x), _inside(y)) + (not isinstance(x, Meta)), "me"),
        "values differ",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_a_wrapper_is_reported(name: str) -> None:
    family, operation, rule, said = FAULTS[name]
    kind = type("Faulty", (Meta,), {})
    kind.rule(rule(kind), operation)
    report = coverage(kind, [sample(kind)], only=[family])
    assert any(said in entry.detail for entry in report.wrong), repr(report)


def test_nothing_is_reported_on_a_faultless_wrapper() -> None:
    report = coverage(Meta, [sample(Meta)], only=[family for family, *_ in FAULTS.values()])
    assert report.passed, repr(report)
    assert report.failing == ()
    assert len(report.by_rule) > 30
