"""The rules that are read off operators, against what an expert would write; each is proven on samples."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.distributed.tensor import Partial, Replicate, Shard

import opwright
from opwright.sharding.known import specs_of
from opwright.sharding.prove import Subject, disproof
from opwright.sharding.report import Sharding
from opwright.sharding.rule import Rule, told
from tests.sharding import at_scale, functions, random_rules

_WORDS = {"R": "Replicate()", "P": "Partial(sum)", "M": "Partial(max)", "m": "Partial(min)"}
_WORDS |= {str(d): f"Shard({d})" for d in range(4)}

# Placements of the arguments and of the result, without the rule that every process computes everything.
CASES: dict[str, tuple[list[tuple[int, ...]], list[str]]] = {
    "spread_sum": ([(6, 8), (6, 8)], ["00>0", "11>1", "PP>P"]),
    "spread_gate": ([(6, 8), (6, 8)], ["00>0", "11>1", "RP>P"]),
    "spread_softmax": ([(6, 8)], ["0>0", "1>1 with 2"]),
    "spread_mean": ([(6, 8), (6, 8)], ["00>P", "11>0", "PR>P", "RP>P"]),
    "spread_norm": ([(6, 8), (8,)], ["0R>0", "10>1 with 1", "RP>P"]),
    "spread_layer_norm": ([(6, 8), (8,), (8,)], ["0RR>0", "100>1 with 2", "RPP>P"]),
    "spread_columns": ([(6, 8)], ["0>R with 1", "1>0"]),
    "spread_linear": ([(2, 6, 8), (5, 8)], ["0R>0", "1R>1", "21>P", "R0>2", "PR>P", "RP>P"]),
    "spread_flat": ([(6, 8)], ["0>0 even", "P>P"]),
    "spread_largest": ([(6, 8)], ["0>M", "1>0"]),
    "spread_smallest": ([(6, 8)], ["0>m", "1>0"]),
    "spread_over_size": ([(6, 8)], ["0>P", "1>0"]),
    "spread_sliced": ([(6, 8)], ["1>1"]),
    "spread_chunks": ([(6, 24), (6, 8)], ["00>0"]),
    "spread_rolled": ([(6, 8)], ["1>1", "P>P"]),
    "spread_positions": ([(6, 8)], ["1>1", "P>P"]),
    "spread_scores": ([(2, 3, 4, 5), (2, 3, 6, 5)], ["00>0", "11>1", "2R>2", "33>P", "R2>3", "PR>P", "RP>P"]),
    "spread_pairs": ([(6,)], []),
    "spread_padded": ([(6, 8)], ["0>0", "P>P"]),
    "spread_padded_steps": ([(6, 8)], ["0>0"]),
}
_REFUSED = {
    "spread_chunks": "whose parts do not correspond",
    "spread_rolled": "one element of x along the axis",
    "spread_positions": "positions along the axis",
    "spread_norm": "takes a sum over it",
    "spread_pairs": "runs along the axis twice",
}


def _sharding(name: str, *args: Any) -> Sharding:
    return opwright.operator(getattr(functions, name)).sharding(*args)


def _short(rule: Rule) -> str:
    letters = {word: letter for letter, word in _WORDS.items()}
    given, made = ("".join(letters[told(one)] for one in side) for side in (rule.inputs, rule.outputs))
    return (
        f"{given}>{made}" + (" even" if rule.even else "") + (f" with {rule.split.collectives}" if rule.split else "")
    )


@pytest.mark.parametrize("name", CASES)
def test_rules_are_those_of_an_expert(name: str) -> None:
    shapes, expected = CASES[name]
    found = _sharding(name, *[torch.randn(shape) for shape in shapes])
    assert sorted(_short(rule) for rule in found.rules if rule.inputs != (Replicate(),) * len(shapes)) == sorted(
        expected
    )
    assert not [one for one in found.told if "not proven" in one.why]
    assert _REFUSED.get(name, "") in " ".join(one.why for one in found.told)


def test_indices_and_their_gradients() -> None:
    indices, weight = torch.randint(0, 5, (6,)), torch.randn(5, 8)
    operator = opwright.operator(functions.spread_embedding)
    assert {_short(rule) for rule in operator.sharding(indices, weight).rules} == {"RR>R", "0R>0", "R1>1", "RP>P"}
    backward = operator.transforms.backward((1,), (0,), (0,), 1)
    found = {_short(rule) for rule in backward.sharding(indices, weight, torch.randn(6, 8)).rules}
    assert {"0R0>P", "R11>1"} <= found


def test_the_gradient_of_a_maximum_is_not_spread_along_it() -> None:
    operator = opwright.operator(functions.spread_largest).transforms.backward((0,), (0,), (0,), 1)
    assert "0R>0" not in {_short(rule) for rule in operator.sharding(torch.randn(6, 8), torch.randn(8)).rules}


def test_random_numbers_have_no_rule() -> None:
    found = _sharding("spread_random", torch.randn(6, 8))
    assert not found.rules
    assert "random numbers" in found.told[0].why


@pytest.mark.parametrize(
    ("name", "rule", "why"),
    [
        ("spread_softmax", Rule("", (Shard(1),), (Shard(1),), (0,)), "differs"),
        ("spread_softmax", Rule("", (Partial(),), (Partial(),), (0,)), "differs"),
        ("spread_chunks", Rule("", (Shard(1), Shard(1)), (Shard(1),), (0,)), "differs"),
        ("spread_mean", Rule("", (Shard(0), Shard(0)), (Partial(),), (0,)), "differs"),
        ("spread_flat", Rule("", (Shard(1),), (Shard(0),), (0,)), "differs"),
        ("spread_rolled", Rule("", (Shard(0),), (Shard(0),), (0,)), "differs"),
        ("spread_norm", Rule("", (Shard(0), Replicate()), (Replicate(),), (0,)), "another shape"),
    ],
)
def test_a_wrong_rule_is_disproved(name: str, rule: Rule, why: str) -> None:
    operator = opwright.operator(getattr(functions, name))
    shapes = CASES[name][0]
    specs = specs_of(operator, [torch.empty(shape) for shape in shapes], shapes)
    subject = Subject(operator.flat_reference, specs, operator.structure(specs))
    assert why in str(disproof(subject, rule))


@pytest.mark.nightly
@pytest.mark.seconds(400)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, 20, 5))
def test_rules_of_random_functions(first: int) -> None:
    judged = random_rules.Judged()
    for seed in range(first, first + 5):
        random_rules.judge(seed, judged)
    assert judged.faults == []
    assert judged.counts["rules"] > 20


def test_wrong_rules_of_random_functions_are_found() -> None:
    operator = opwright.operator(functions.spread_softmax)
    specs = specs_of(operator, [torch.empty(6, 8)], [(6, 8)])
    subject = Subject(operator.flat_reference, specs, operator.structure(specs))
    for wrong in (Rule("", (Shard(1),), (Shard(1),), (0,)), Rule("", (Partial(),), (Partial(),), (0,))):
        assert "differs" in str(random_rules.fault_of(subject, wrong, 0))


def test_a_report_shows_itself() -> None:
    found = _sharding("spread_norm", torch.randn(6, 8), torch.randn(8))
    assert "Shard(0)" in repr(found)
    assert "no rule for addends of x" in repr(found)
    assert "<pre" in found._repr_html_()
    as_json = json.loads(json.dumps(found.to_dict()))
    assert {"inputs": ["Shard(0)", "Replicate()"], "outputs": ["Shard(0)"]}.items() <= as_json["rules"][1].items()


def test_sums_of_half_types_are_not_rounded_before_they_are_added_up() -> None:
    x, w = torch.randn(6, 8, dtype=torch.bfloat16), torch.randn(8, dtype=torch.bfloat16)
    assert not [rule for rule in _sharding("spread_norm", x, w).rules if rule.split]


def test_a_split_that_reduces_otherwise_is_disproved() -> None:
    operator = opwright.operator(functions.spread_softmax)
    specs = specs_of(operator, [torch.empty(6, 8)], [(6, 8)])
    subject = Subject(operator.flat_reference, specs, operator.structure(specs))
    (rule,) = [rule for rule in operator.sharding(torch.empty(6, 8)).rules if rule.split]
    assert disproof(subject, rule) is None
    first, second = rule.split.before  # type: ignore[union-attr]
    before = (first, replace(second, functions=("max",)))
    wrong = replace(rule, split=replace(rule.split, before=before))  # type: ignore[type-var]
    assert "differs" in str(disproof(subject, wrong))


def test_rules_serve_other_sizes_without_another_trace() -> None:
    operator = opwright.operator(functions.spread_gate)
    traced: list[Callable[..., Any]] = []
    structure = operator.structure
    operator.structure = lambda specs: traced.append(operator) or structure(specs)  # type: ignore[method-assign,func-returns-value]
    for rows in (6, 7, 2):
        operator.sharding(torch.randn(rows, 8), torch.randn(rows, 8))
    assert len(traced) == 1
    operator.sharding(torch.randn(1, 8), torch.randn(1, 8))
    assert len(traced) == 2


def test_functions_that_compute_in_float32_are_split_too() -> None:
    operator = opwright.operator(at_scale.norm, name="tests::wide_norm")
    x, w = torch.randn(6, 8, dtype=torch.bfloat16), torch.randn(8, dtype=torch.bfloat16)
    assert {_short(rule) for rule in operator.sharding(x, w).rules} == {"RR>R", "0R>0", "10>1 with 1", "RP>P"}


@pytest.mark.nightly
def test_the_page_on_paper_is_what_the_rules_say() -> None:
    text = at_scale.PAGE.read_text(encoding="utf-8")
    assert at_scale.written(text) == text
