"""What a page is made from: the facts of an operator, and of one without samples or kernels."""

import html
import json

import pytest
import torch

import opwright
from opwright.benchmark.stopwatch import Plan
from opwright.errors import DrawingMissing
from opwright.page import gather, render


def gated_by_page(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    y = x * weight
    return y * torch.sigmoid(y)


@pytest.fixture(scope="module")
def facts():
    operator = opwright.operator(samples=opwright.shapes("B S", "S", B=4, S=8), name="page_gather::gated")
    return gather(operator(gated_by_page))


def test_the_function_its_passes_and_what_is_saved_are_there(facts) -> None:
    forward, backward = facts.passes
    assert "torch.sigmoid(y)" in facts.function
    assert facts.traced_for == ("x: float32[4, 8]", "weight: float32[8]")
    assert [step.kind for step in forward.steps] == ["kernel"]
    assert "for (" in forward.steps[0].source
    assert forward.steps[0].source in forward.source
    assert len(backward.before.boxes) > len(backward.after.boxes)
    assert {each.name for each in facts.saved if each.role == "argument"} == {"x", "weight"}
    assert any("bar" in formula for step in backward.steps for formula in step.mathml)


def test_arrows_join_boxes_that_exist(facts) -> None:
    for each in facts.passes:
        for diagram in (each.before, each.after):
            keys = [box.key for box in diagram.boxes]
            assert len(set(keys)) == len(keys)
            assert {key for arrow in diagram.arrows for key in arrow} <= set(keys)
            assert {box.lines[0] for box in diagram.boxes if box.kind == "output"}


def test_the_page_is_made_of_the_json_alone_and_loads_nothing(facts) -> None:
    page = render(json.loads(json.dumps(facts.to_json())))
    assert page == render(facts.to_json())
    assert "page_gather::gated" in page
    assert not any(word in page for word in ("http:", "https:", "<script", "@import", "url("))


def test_without_samples_the_page_says_so() -> None:
    facts = gather(opwright.operator(name="page_gather::bare")(gated_by_page))
    assert "has no samples" in facts.refusal
    assert facts.passes == ()
    assert "There are no kernels" in render(facts.to_json())


def test_a_notebook_shows_the_page_with_what_was_found_of_it(monkeypatch) -> None:
    operator = opwright.operator(samples=opwright.shapes("B S", "S", B=4, S=8), name="page_gather::noted")(
        gated_by_page
    )
    plain = operator._repr_html_()
    assert plain.startswith("<iframe srcdoc=")
    assert plain.endswith("</iframe>")
    assert "Is it right?" not in plain
    assert "Speed" not in plain
    operator.check(quick=True, only=["values"])
    operator.bench(compile=False, plan=Plan(fewest_rounds=2, most_rounds=2))
    shown = operator._repr_html_()
    assert "Is it right?" in shown
    assert "&gt;Speed&lt;" in shown
    page = html.unescape(shown[len('<iframe srcdoc="') : shown.index('" title=')])
    assert page.startswith("<!doctype html>")
    assert page.endswith("</html>")

    def missing(*_, **__):
        raise DrawingMissing("igraph is not installed")

    monkeypatch.setattr("opwright.page.framed.framed", missing)
    assert operator._repr_html_() is None


def test_a_step_that_makes_nothing_has_a_name() -> None:
    operator = opwright.operator(samples=indices_below_two, name="page_gather::asserting")(asserting_by_page)
    forward = gather(operator).passes[0]
    assert "assert_async" in [step.name for step in forward.steps]
    assert ("assert_async",) in [box.lines for box in forward.after.boxes]


def indices_below_two(device, dtype):
    return [opwright.Sample((torch.ones(3, device=device, dtype=dtype), torch.ones(3, dtype=torch.int64)))]


def asserting_by_page(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    torch._assert_async((index < 2).all(), "an index is too large")
    return x * 2
