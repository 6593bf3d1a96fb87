"""What a packaged operator does when its kernels decline, without a library: its kernels here are Python."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from opwright.deployment.wheels.runtime.packaged import PackagedOperator
from opwright.deployment.wheels.runtime.variant import Variant

NOTHING = {
    "rung": "cpp",
    "device": "cpu",
    "forward": "forward",
    "backward": "backward",
    "constants": {"1": ("bool", "False")},
    "tensors": (0,),
    "numbers": (),
    "integers": (),
    "number_guards": (),
    "outputs": 1,
    "tangents": (0,),
    "gradients": (0,),
    "arguments": (0,),
    "contributing": (0,),
    "kept": (),
    "sizes": (),
    "is_random": False,
    "orders": [],
    "needs_row_major": False,
    "needs_whole_memory": False,
}


def sometimes(x, training):
    return F.dropout(torch.sin(x), 0.5, bool(training))


def variant(device="cpu", **kernels):
    return Variant.from_record({**NOTHING, "device": device}, lambda name: kernels.get(name, lambda *_: None))


def packaged(**kernels):
    return PackagedOperator("mine::sometimes", sometimes, [variant(**kernels)])


def test_a_declined_call_is_the_references():
    operator = packaged()
    x = torch.randn(3, requires_grad=True)
    torch.testing.assert_close(operator(x, False), torch.sin(x))
    assert operator.last_rung == "composed"
    (found,) = operator.serve_gradients(x.detach(), False, torch.ones(3))
    torch.testing.assert_close(found, torch.cos(x))


@pytest.mark.parametrize(
    ("training", "rung"), [(False, "cpp"), (0, "composed"), (True, "composed"), (None, "composed")]
)
def test_a_constant_is_the_one_that_a_kernel_was_written_for(training, rung):
    operator = packaged(forward=torch.sin)
    operator(torch.randn(3), training)
    assert operator.last_rung == rung


def test_kernels_for_gpus_are_not_asked_for_tensors_on_the_processor():
    operator = PackagedOperator("mine::sometimes", sometimes, [variant("cuda", forward=torch.cos)])
    x = torch.randn(3, requires_grad=True)
    torch.testing.assert_close([operator(x, False), operator(x.detach(), False)], [torch.sin(x), torch.sin(x).detach()])
    (found,) = operator.serve_gradients(x.detach(), False, torch.ones(3))
    torch.testing.assert_close(found, torch.cos(x.detach()))
    assert operator.last_rung == "composed"


def test_a_backward_kernel_that_declines_leaves_it_to_the_reference():
    operator = packaged(forward=torch.sin)
    x = torch.randn(3, requires_grad=True)
    (found,) = torch.autograd.grad(operator(x, False).sum(), x)
    assert operator.last_rung == "cpp"
    torch.testing.assert_close(found, torch.cos(x))


def test_gradients_never_draw_other_random_numbers_than_the_forward_pass():
    with pytest.raises(RuntimeError, match="mine::sometimes draws random numbers here, and its gradients would draw"):
        packaged().serve_gradients(torch.randn(3), True, torch.ones(3))


@pytest.mark.parametrize("quiet", [True, False])
def test_what_must_see_torch_operations_sees_those_of_the_reference(quiet):
    operator = packaged(forward=torch.sin)
    with torch.autocast("cpu", torch.bfloat16, enabled=not quiet):
        operator(torch.randn(3), False)
    assert operator.last_rung == ("cpp" if quiet else "composed")
