"""What operations do with a type: rules by name and by function, and which of them wins."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from opwright.errors import WrapperRefused
from opwright.tensors import Wrapper

aten = torch.ops.aten


def fresh(**line: Any) -> Any:
    return type("Fresh", (Wrapper,), {}, **({"data": ("elem",)} | line))


def test_a_reduction_gives_plain_tensors() -> None:
    kind = fresh()
    kind.rule("reduction", aten.sum, aten.argmax)
    x = kind(torch.arange(6.0).view(2, 3))
    assert type(x.sum()) is torch.Tensor
    assert x.sum() == 15
    assert type(x.argmax()) is torch.Tensor
    assert type(x.mean()) is kind


def test_element_wise_operations_are_checked() -> None:
    kind = fresh()
    kind.rule("element-wise", aten)
    x = kind(torch.ones(2, 3))
    assert type(x * torch.ones(3)) is kind
    with pytest.raises(WrapperRefused, match="not element-wise: it makes"):
        x.sum()


def test_densify_gives_plain_tensors_and_changes_none() -> None:
    kind = fresh(data=("low", "high"))
    kind.densify = lambda self: (self.low + self.high) / 2
    x = kind(torch.zeros(3), torch.full((3,), 2.0))
    assert type(x + 1) is torch.Tensor  # what a type around several tensors does with an operation it does not know
    assert torch.equal(x + 1, torch.full((3,), 2.0))
    assert type(x.clone()) is kind
    with pytest.raises(WrapperRefused, match="changes a tensor"):
        x.add_(1)


def test_several_tensors_without_a_meaning_refuse() -> None:
    kind = fresh(data=("low", "high"))
    with pytest.raises(WrapperRefused, match=r"Fresh has no rule for aten.add.Tensor"):
        kind(torch.zeros(3), torch.ones(3)) + 1
    kind.rule("rewrap", aten.add)
    result = kind(torch.zeros(3), torch.ones(3)) + 1
    assert torch.equal(result.low, torch.ones(3))
    assert torch.equal(result.high, torch.full((3,), 2.0))


def test_answers_of_several_tensors_must_agree() -> None:
    kind = fresh(data=("low", "high"))
    kind.rule("rewrap", aten.equal)
    x = kind(torch.zeros(3), torch.ones(3))
    assert torch.equal(x, x)
    with pytest.raises(WrapperRefused, match="different answers"):
        torch.equal(x, torch.zeros(3))


def test_the_most_special_rule_wins() -> None:
    kind = fresh()
    kind.rule(lambda *args, **kwargs: "overload", aten.mul.Tensor)
    kind.rule(lambda *args, **kwargs: "operation", aten.mul)
    kind.rule("refuse", aten)
    x = kind(torch.ones(3))
    assert kind._rule_for(("aten::mul.Tensor", "aten::mul", "aten"))(kind, aten.mul, (), {}) == "overload"
    assert kind._rule_for(("aten::mul.Scalar", "aten::mul", "aten"))(kind, aten.mul, (), {}) == "operation"
    with pytest.raises(WrapperRefused, match=r"refuses aten.exp"):
        x.exp()


def test_a_subclass_has_the_rules_of_its_bases_and_its_own() -> None:
    kind = fresh()
    derived = type("Derived", (kind,), {})
    x = derived(torch.ones(3))
    assert type(x.sum()) is derived
    kind.rule("reduction", aten.sum)
    assert type(x.sum()) is torch.Tensor  # the rule of an operation is looked for again
    derived.rule("rewrap", aten)
    assert type(x.sum()) is derived


def test_a_function_gets_the_arguments_of_the_operation() -> None:
    kind = fresh(meta=("scale",))
    kind.rule(lambda x, y: kind(x.elem, x.scale * y) if isinstance(y, float) else NotImplemented, aten.mul.Tensor)
    result = kind(torch.ones(3), 2.0) * 3.0
    assert result.scale == 6
    with pytest.raises(TypeError, match=r"aten.mul.Tensor"):
        torch.mul(kind(torch.ones(3), 2.0), torch.ones(3))


@pytest.mark.parametrize(
    ("rule", "what", "said"),
    [
        ("rewrite", (aten.mul,), "no rule 'rewrite'"),
        (3, (aten.mul,), "3 is no rule"),
        ("rewrap", (torch.mul,), "is no operation that a rule can be for"),
        ("rewrap", ("mul",), "'mul' is no operation that a rule can be for"),
        (aten.mul, ("rewrap",), "'rewrap' is no operation that a rule can be for"),
        ("rewrap", (), "for no operation"),
    ],
)
def test_what_is_no_rule_is_refused(rule: Any, what: Any, said: str) -> None:
    with pytest.raises(WrapperRefused, match=said):
        fresh().rule(rule, *what)


def test_the_dtype_shown_is_that_of_the_named_tensor() -> None:
    kind = fresh(data=("codes", "scale"), dtype="scale")
    x = kind(torch.ones(3, dtype=torch.int8), torch.tensor(0.5))
    assert x.dtype is torch.float32
    double = x.to(torch.float64)
    assert (double.dtype, double.codes.dtype, double.scale.dtype) == (torch.float64, torch.int8, torch.float64)


def test_types_that_hold_different_tensors_are_refused_before_anything_changes() -> None:
    kind = fresh()
    derived = type("Derived", (kind,), {}, data=("low", "high"))
    derived.rule("rewrap", aten)
    x = kind(torch.ones(3))
    with pytest.raises(WrapperRefused, match="hold different tensors"):
        x.add_(derived(torch.ones(3), torch.ones(3)))
    assert torch.equal(x.elem, torch.ones(3))


def test_a_short_way_for_elementary_operations_does_what_the_general_one_does() -> None:
    kind = fresh(meta=("unit",))
    derived = type("Derived", (kind,), {}, meta=("maker",))
    x, sub = kind(torch.rand(3), "m"), derived(torch.rand(3), "m", "me")
    assert type(x + x) is kind
    assert torch.equal((x + x).elem, x.elem * 2)
    assert torch.equal(torch.add(x, x, alpha=2).elem, x.elem * 3)
    assert (torch.cat([x, x]).unit, torch.cat([x, x]).elem.shape) == ("m", (6,))
    least, where = x.min(0)
    assert (least.unit, where.unit, least.elem) == ("m", "m", x.elem.min())
    assert torch.equal(x, x)  # a bool, which is not wrapped
    with pytest.raises(WrapperRefused, match="Fresh has no maker, which Derived needs"):
        x + sub
    with pytest.raises(WrapperRefused, match="different metadata"):
        x + kind(torch.rand(3), "s")


def test_a_plain_tensor_is_not_copied_into_several() -> None:
    kind = fresh(data=("codes", "scale"))
    x = kind(torch.zeros(3), torch.ones(3))
    x.copy_(kind(torch.full((3,), 4.0), torch.full((3,), 5.0)))
    assert x.codes.eq(4).all()
    assert x.scale.eq(5).all()
    for copied in (lambda: x.copy_(torch.ones(3)), lambda: torch.ones(3).copy_(x)):
        with pytest.raises(WrapperRefused, match="cannot be copied to or from a plain one"):
            copied()
    assert x.codes.eq(4).all()
