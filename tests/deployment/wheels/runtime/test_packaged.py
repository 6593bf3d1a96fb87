"""What a packaged operator does when its kernels decline, without a library: its kernels here are Python."""

import pydoc
import warnings

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from opwright.deployment.wheels.runtime.autograd import WholeNode
from opwright.deployment.wheels.runtime.packaged import PackagedOperator
from opwright.deployment.wheels.runtime.variant import Variant

pytestmark = pytest.mark.filterwarnings("ignore:no kernel of mine:RuntimeWarning")  # calls that no kernel takes

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
    "reach": [[0]],
    "gradients": (0,),
    "arguments": (0,),
    "contributing": (0,),
    "checked": (),
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


def doubled_and_tripled(x, w):
    return x * w, x * 3


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("wanted", [(True, True), (True, False), (False, True)])
def test_results_require_gradients_where_they_flow(wanted, compiled):
    record = {
        "constants": {}, "tensors": (0, 1), "outputs": 2, "tangents": (0, 1), "reach": [[0, 1], [0]],
        "gradients": (0, 1), "arguments": (0, 1), "contributing": (0, 1),
    }  # fmt: skip
    kernels = {"forward": doubled_and_tripled, "backward": lambda x, w, a, b: (a * w + b * 3, a * x)}
    operator = PackagedOperator(
        "mine::doubled_and_tripled", doubled_and_tripled, [Variant.from_record({**NOTHING, **record}, kernels.get)]
    )
    operator.call_whole, operator.call_gradients = doubled_and_tripled, kernels["backward"]
    given = [torch.linspace(1, top, 3).requires_grad_(each) for top, each in zip((2, 3), wanted, strict=True)]
    results = WholeNode.apply(operator, *given) if compiled else operator(*given)
    expected = doubled_and_tripled(*given)
    assert [each.requires_grad for each in results] == [each.requires_grad for each in expected]
    assert compiled or operator.last_rung == "cpp"
    leaves = [each for each in given if each.requires_grad]
    for used in ((0,), (0, 1)) if wanted[0] else ((0,),):
        found = torch.autograd.grad([results[p].sum() for p in used], leaves, retain_graph=True)
        right = torch.autograd.grad([expected[p].sum() for p in used], leaves, retain_graph=True)
        torch.testing.assert_close(found, right)


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


@pytest.mark.parametrize("built", [torch.float32, torch.float64], ids=str)
def test_kernels_serve_under_the_default_dtype_that_they_were_built_under(built):
    operator = PackagedOperator("mine::sometimes", sometimes, [variant(forward=torch.cos)], None, built)
    x = torch.randn(3)
    before = torch.get_default_dtype()
    try:
        for default in (torch.float32, torch.float64):
            torch.set_default_dtype(default)
            is_served = default is built
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                for _ in range(2):
                    torch.testing.assert_close(operator(x, False), torch.cos(x) if is_served else torch.sin(x))
            assert operator.last_rung == ("cpp" if is_served else "composed")
            assert [one.filename for one in said] == [__file__] * (not is_served)
    finally:
        torch.set_default_dtype(before)


def scaled(x: torch.Tensor, times: float) -> torch.Tensor:
    """Multiply."""
    return x * times


def scaling(**changed):
    """An operator with a number at run time, whose kernels note what they are given."""
    given = []

    def forward(x, times):
        given.append(times)
        return x * times

    record = {**NOTHING, "constants": {}, "tensors": (0, 1), "numbers": (1,), "arguments": (1,), **changed}
    kernels = {"forward": forward, "backward": lambda times, g: given.append(times) or g * times}
    return PackagedOperator("mine::scaled", scaled, [Variant.from_record(record, kernels.get)]), given


@pytest.mark.parametrize(
    ("x", "times", "rung"),
    [
        (torch.ones(3), 2, "cpp"),
        (torch.ones(3), 2.0, "cpp"),
        (torch.ones(3), True, "composed"),
        (torch.ones(3), 2**53 + 1, "composed"),
        (torch.ones(3, dtype=torch.int64), 2, "composed"),
    ],
)
def test_an_int_is_taken_for_the_float_of_its_value(x, times, rung):
    operator, given = scaling()
    torch.testing.assert_close(operator(x, times), x * times)
    assert operator.last_rung == rung
    assert [number.dtype for number in given] == [torch.float64] * (rung == "cpp")


def test_a_backward_kernel_gets_an_int_as_a_float_too():
    operator, given = scaling()
    x = torch.ones(3, requires_grad=True)
    torch.testing.assert_close(torch.autograd.grad(operator(x, 2).sum(), x), (torch.full((3,), 2.0),))
    assert [number.dtype for number in given] == [torch.float64, torch.float64]


def test_help_shows_the_signature_and_a_wrong_call_names_the_function():
    operator, _ = scaling()
    assert "scaled(x: torch.Tensor, times: float) -> torch.Tensor" in pydoc.plain(pydoc.render_doc(operator))
    with pytest.raises(TypeError, match=r"^scaled\(\): missing a required argument: 'times'$"):
        operator(torch.ones(3))
    held = type("Holder", (), {"scaled": operator})().scaled
    assert held(torch.ones(3), 2.0).tolist() == [2.0] * 3


@pytest.mark.parametrize("recorded", [False, True])
def test_a_call_without_a_kernel_is_told_once_for_each_kind(recorded):
    operator = packaged(forward=torch.sin)
    said = []
    for call in ((torch.randn(3), False), (torch.randn(3), True), (torch.randn(5), True), (torch.randn(1), True)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            operator(call[0].requires_grad_(recorded), *call[1:])
        said += [(str(each.message), each.filename) for each in caught]
    assert [message.partition(":")[0] for message, _ in said] == ["no kernel of mine"] * 2
    assert "was built for (float32[n], True): the function runs as written" in said[0][0]
    assert "(float32[1], True)" in said[1][0]
    assert {file for _, file in said} == {__file__}


def test_nothing_is_told_of_a_device_without_kernels():
    operator = PackagedOperator("mine::sometimes", sometimes, [variant("cuda", forward=torch.cos)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        operator(torch.randn(3), False)
