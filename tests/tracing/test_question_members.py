"""Whatever a tensor tells beside its values, shape, dtype and device is a question that a trace refuses."""

import pytest
import torch

from opwright.tracing.recording.questions import _FACTS

VALUES = torch.linspace(0.5, 3.0, 6)


def with_gradient():
    tensor = VALUES.clone().requires_grad_()
    tensor.sum().backward()
    return tensor


def with_hook():
    tensor = VALUES.clone().requires_grad_()
    tensor.register_hook(lambda gradient: gradient)
    return tensor


def retained():
    tensor = VALUES.clone().requires_grad_() * 1
    tensor.retain_grad()
    return tensor


def in_inference():
    with torch.inference_mode():
        return VALUES.clone()


TWINS = {
    "a leaf": lambda: VALUES.clone().requires_grad_(),
    "a result": lambda: VALUES.clone().requires_grad_() * 1,
    "second result": lambda: (VALUES.repeat(2).requires_grad_() * 1).split(6)[1],
    "with a gradient": with_gradient,
    "with a hook": with_hook,
    "retained": retained,
    "in inference mode": in_inference,
    "changed in place": lambda: VALUES.clone().add_(0),
    "a view": lambda: torch.cat([VALUES, VALUES])[6:],
    "with strides": lambda: VALUES.repeat_interleave(2)[::2],
    "negated": lambda: torch.complex(VALUES, -VALUES).conj().imag,
    "shared": lambda: VALUES.clone().share_memory_(),
}
# Called without arguments these change the tensor, or tell its values, or what only their own code means.
UNASKED = {"__dir__", "__reduce__", "__reduce_ex__", "__hash__", "__sizeof__", "__dict__", "__cuda_array_interface__"}


def answer(tensor, name):
    """What a tensor says when it is asked without arguments: a plain value; or a type, for what is none."""
    try:
        found = getattr(tensor, name)
        found = found() if callable(found) else found
    except Exception as error:
        return type(error)
    return found if isinstance(found, (bool, int, str, tuple, type(None))) else type(found)


def tells_apart(name, twin):
    return answer(VALUES.clone(), name) != answer(twin(), name)


ASKING = ("is_", "_is_", "has_", "_has_")
NAMES = [name for name in dir(torch.Tensor) if name.startswith(ASKING) or not callable(getattr(torch.Tensor, name))]


@pytest.mark.parametrize("what", TWINS)
@pytest.mark.filterwarnings("ignore")
def test_what_tells_twins_apart_is_a_question(what):
    asked = {name for name in NAMES if name not in UNASKED and tells_apart(name, TWINS[what])}
    members = {name: getattr(torch.Tensor, name) for name in asked}
    unknown = {
        name for name, member in members.items() if (member if callable(member) else member.__get__) not in _FACTS
    }
    assert not unknown, unknown


@pytest.mark.filterwarnings("ignore")
def test_the_comparison_sees_a_question():
    assert tells_apart("is_leaf", TWINS["a result"])
    assert not tells_apart("shape", TWINS["a result"])
