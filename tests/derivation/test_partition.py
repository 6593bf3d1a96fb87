"""What crosses to the backward pass, and that every policy gives the same gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import Node
from torch.nn import functional

from opwright.derivation.joint import Joint, trace_joint
from opwright.derivation.saving.partition import inputs_behind, partition
from opwright.lowering.lower import lower
from opwright.passes.order import optimize
from tests.derivation.test_joint import CASES, lltm_cell, normal
from tests.derived import run, specs_of

Tensor = torch.Tensor
POLICIES = ("auto", "inputs", "all", 0.5)


def joint_of(reference: Callable[..., Any], arguments: tuple[Tensor, ...]) -> Joint:
    return trace_joint(reference, specs_of("xyz"[: len(arguments)], arguments))


def backward_results(
    joint: Joint, policy: str, arguments: tuple[Tensor, ...], cotangents: list[Tensor]
) -> list[Tensor]:
    """Run the forward pass for what is saved, then the backward pass from that alone."""
    kept = partition(joint, policy)
    names = {given.node: given.name for given in joint.graph.inputs}
    tangents = [node for node in joint.tangents if node is not None]
    given = [(names[given.node], given.node) for given in joint.graph.inputs if given.node not in tangents]
    results = (*kept.outputs, *kept.intermediates)
    intermediates = [(f"saved_{position}", node) for position, node in enumerate(results)]
    sizes = {
        f"{name}_size_{dimension}": size
        for (name, _), argument in zip(given, arguments, strict=True)
        for dimension, size in enumerate(argument.shape)
    }
    saved = run(optimize(lower(joint.graph, "forward", given, intermediates)), arguments) if intermediates else []
    values = dict(zip([name for name, _ in given], arguments, strict=True))
    backward = optimize(
        lower(
            joint.graph,
            "backward",
            [
                *((names[node], node) for node in kept.inputs),
                *intermediates,
                *((names[node], node) for node in tangents),
            ],
            [(f"grad_{position}", node) for position, node in enumerate(joint.gradients) if node is not None],
        )
    )
    inputs = [*(values[names[node]] for node in kept.inputs), *saved, *cotangents]
    return run(backward, inputs, **{name: sizes[name] for name in backward.sizes})


@pytest.mark.parametrize(("reference", "arguments"), CASES.values(), ids=CASES)
def test_policies_agree(reference: Callable[..., Any], arguments: tuple[Tensor, ...]) -> None:
    joint = joint_of(reference, arguments)
    returned = reference(*arguments)
    outputs = [o for o in dict.fromkeys([returned] if isinstance(returned, Tensor) else returned) if o.requires_grad]
    cotangents = [normal(*output.shape).detach() for output in outputs]
    expected = [g for g in torch.autograd.grad(outputs, arguments, cotangents, allow_unused=True) if g is not None]
    for policy in POLICIES:
        for actual, right in zip(backward_results(joint, policy, arguments, cotangents), expected, strict=True):
            torch.testing.assert_close(actual, right, rtol=1e-12, atol=1e-12)


def test_the_lltm_cell_saves_its_inputs_alone() -> None:
    joint = joint_of(lltm_cell, (normal(4, 9), normal(4, 3)))
    kept = partition(joint)
    assert [node.name for node in kept.inputs] == ["x", "y"]
    assert kept.intermediates == ()


def operations(nodes: tuple[Node, ...]) -> list[str]:
    return [str(node.target) for node in nodes]


def test_a_product_is_saved_rather_than_computed_again() -> None:
    arguments = (normal(4, 30), normal(30, 3))
    joint = joint_of(lambda x, y: torch.tanh(x @ y).sin(), arguments)
    assert operations(partition(joint, "auto").intermediates) == ["aten.mm.default"]
    assert operations(partition(joint, "inputs").intermediates) == []
    assert partition(joint, "inputs").inputs == tuple(given.node for given in joint.graph.inputs[:2])


def test_a_view_of_a_product_is_saved_through_its_base() -> None:
    joint = joint_of(lambda x, y: torch.sin((x @ y).mT), (normal(4, 30), normal(30, 3)))
    assert operations(partition(joint, "auto").intermediates) == ["aten.mm.default"]


def test_the_smaller_side_of_a_cut_is_saved() -> None:
    joint = joint_of(lambda x, y: torch.sin((x @ y).sum(0)), (normal(40, 5), normal(5, 3)))
    assert operations(partition(joint, "auto").intermediates) == ["aten.sum.dim_IntList"]


def test_an_output_that_is_all_the_backward_pass_reads_is_kept() -> None:
    for function in (torch.tanh, lambda x: torch.softmax(x, -1)):
        kept = partition(joint_of(function, (normal(4, 3),)))
        assert (kept.inputs, len(kept.outputs), kept.intermediates) == ((), 1, ())


def test_a_small_output_of_a_half_type_is_saved_as_it_was_computed() -> None:
    def summed(x: Tensor) -> Tensor:
        return (x * 3).logsumexp(-1)

    for length, dtype in ((4, torch.bfloat16), (4, torch.float32), (1, torch.float16)):
        joint = joint_of(summed, (normal(30, length).to(dtype).detach().requires_grad_(),))
        kept = partition(joint)
        result = tuple(joint.graph.outputs)
        expected = {4: ((), result) if dtype is torch.bfloat16 else (result, ()), 1: ((), ())}[length]
        assert (kept.outputs, kept.intermediates) == expected
        assert kept.little == set(kept.intermediates)


def test_all_saves_what_the_backward_pass_reads() -> None:
    joint = joint_of(lambda x: functional.silu(x).tanh(), (normal(4),))
    assert len(partition(joint, "all").intermediates) >= 2
    assert partition(joint, "auto").intermediates == ()


def test_inputs_behind_the_gradients() -> None:
    joint = joint_of(lambda x, y: x * y + y, (normal(4), normal(4)))
    assert {node.name for node in inputs_behind(joint)} == {"x", "y"}
    joint = joint_of(lambda x, y: x.sin() + y, (normal(4), normal(4)))
    assert {node.name for node in inputs_behind(joint)} == {"x"}
