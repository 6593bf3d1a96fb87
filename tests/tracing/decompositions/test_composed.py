"""Norms composed of simpler functions: torch's values and errors, and derivatives that are right at every order."""

import pytest
import torch
from torch.nn import functional

import opwright
from opwright.tracing.decompositions.composed import Composed

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")
D = torch.float64
X, WEIGHT, BIAS = (
    torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=D) for shape in ((3, 4, 5), (4,), (4,))
)

NORMS = {
    "layer_norm": lambda x, w, b: functional.layer_norm(x.mT, (4,), w, b),
    "layer_norm, two axes": lambda x, w, b: torch.layer_norm(x, (4, 5)),
    "group_norm": lambda x, w, b: functional.group_norm(x, 2, w, b, eps=1e-3),
    "torch.group_norm": lambda x, w, b: torch.group_norm(x, 2, w, b),
    "batch_norm": lambda x, w, b: functional.batch_norm(x, None, None, w, b, training=True),
    "batch_norm, evaluating": lambda x, w, b: functional.batch_norm(x, w, b * b + 1, b, w),
    "torch.batch_norm": lambda x, w, b: torch.batch_norm(x, w, b, None, None, True, 0.1, 1e-5, False),
    "instance_norm": lambda x, w, b: functional.instance_norm(x, None, None, w, b),
    "instance_norm, running": lambda x, w, b: functional.instance_norm(x, w, b * b + 1, use_input_stats=False),
    "torch.instance_norm": lambda x, w, b: torch.instance_norm(x, w, b, None, None, True, 0.1, 1e-5, False),
}
WRONG_TWICE = ("layer_norm", "batch_norm", "instance_norm")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)
def test_values(norm, dtype):
    arguments = [argument.to(dtype) for argument in (X, WEIGHT, BIAS)]
    with Composed():
        composed = norm(*arguments)
    assert composed.dtype is dtype
    rounding = {"rtol": 2**-6, "atol": 2**-8} if dtype is torch.bfloat16 else {}
    torch.testing.assert_close(composed, norm(*arguments), **rounding)


@pytest.mark.parametrize("norm", [functional.batch_norm, functional.instance_norm])
def test_running_statistics(norm):
    composed, eager = [[torch.zeros(4, dtype=D), torch.ones(4, dtype=D)] for _ in range(2)]
    options = {"training": True} if norm is functional.batch_norm else {"use_input_stats": True}
    with Composed():
        norm(X, *composed, momentum=0.3, **options)
    norm(X, *eager, momentum=0.3, **options)
    torch.testing.assert_close(composed, eager)


@pytest.mark.parametrize(
    "call",
    [
        lambda: functional.layer_norm(X, (4,)),
        lambda: functional.layer_norm(X, (5,), WEIGHT),
        lambda: functional.group_norm(X, 3),
        lambda: functional.group_norm(X, 2, WEIGHT[:2]),
        lambda: functional.batch_norm(X, None, None, WEIGHT[:3], training=True),
        lambda: functional.batch_norm(X[:1, :, :1], None, None, training=True),
        lambda: functional.instance_norm(X[:, :, :1]),
    ],
)
def test_what_torch_refuses_is_refused(call):
    with pytest.raises((RuntimeError, ValueError)) as refused:
        call()
    with pytest.raises(refused.type), Composed():
        call()


def moved(function, x, direction):
    return torch.func.jvp(function, (x,), (direction,))[1]


def slope(function, x, direction):
    return (torch.func.grad(function)(x) * direction).sum()


def third(function, along):
    """The third derivative along a direction, of a sum of sines."""
    direction = torch.randn(X.shape, generator=torch.Generator().manual_seed(1), dtype=D)

    def once(function):
        return lambda x: along(function, x, direction)

    return once(once(once(lambda x: function(x, WEIGHT, BIAS).sin().sum())))(X)


def composed(norm):
    def run(x, w, b):
        with Composed():
            return norm(x, w, b)

    return run


@pytest.mark.parametrize("name", WRONG_TWICE)
@pytest.mark.parametrize("along", [moved, slope])
def test_torch_is_still_wrong(name, along):
    """Where this fails, torch has mended its formula, and the composition can go."""
    with pytest.raises(AssertionError):
        torch.testing.assert_close(third(NORMS[name], along), third(composed(NORMS[name]), slope))


@pytest.mark.parametrize(
    ("name", "along"),
    [
        pytest.param("layer_norm", slope, marks=pytest.mark.nightly),
        ("batch_norm", moved),
        pytest.param("batch_norm", slope, marks=pytest.mark.nightly),
        pytest.param("layer_norm", moved, marks=pytest.mark.nightly),
        pytest.param("instance_norm", slope, marks=pytest.mark.nightly),
        pytest.param("instance_norm", moved, marks=pytest.mark.nightly),
    ],
)
def test_an_operator_is_right(name, along):
    def norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return NORMS[name](x, w, b)

    operator = opwright.operator(norm, name=f"composed::{name}_{along.__name__}")
    torch.testing.assert_close(third(operator, along), third(composed(norm), slope))


def test_a_determinant_twice_in_forward_mode():
    def det(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.det(x)

    operator = opwright.operator(det, name="composed::det")
    x, direction = X[:, :, :4][:, :4], X[:, :, 1:]
    found = moved(lambda x: moved(lambda x: operator(x).sum(), x, direction), x, direction)
    torch.testing.assert_close(found, slope(lambda x: slope(lambda x: det(x).sum(), x, direction), x, direction))


def dropped(x):
    return functional.dropout(x.sin(), 0.3) * torch.dropout(x, 0.5, True) + functional.dropout(x, training=False)


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: torch.func.jvp(f, (X,), (X,)),
        lambda f: torch.vmap(f, randomness="different")(X),
        lambda f: torch.func.jvp(torch.vmap(f, randomness="different"), (X,), (X,)),
    ],
    ids=["jvp", "vmap", "jvp of vmap"],
)
def test_dropout_under_transforms_has_kernels_and_draws_what_torch_draws(transform):
    operator, found = opwright.operator(dropped), []
    for function in (operator, dropped):
        torch.manual_seed(1)
        found.append((transform(function), torch.rand(2)))
    torch.testing.assert_close(*found)
    assert operator.last_rung == "cpp"


@pytest.mark.parametrize("place", [1, 2])
def test_running_statistics_have_no_derivatives(place):
    """Torch refuses gradients of them in its words, and takes them as constants in forward mode."""

    def evaluated(x, mean, variance):
        return functional.batch_norm(x, mean, variance).sin()

    operator = opwright.operator(evaluated, name=f"composed::evaluated_{place}")
    given = [X, WEIGHT, BIAS.square() + 1]
    for function in (evaluated, operator):

        def of_one(value, function=function):
            return function(*given[:place], value, *given[place + 1 :]).sum()

        with pytest.raises(RuntimeError, match=f"with respect to argument 'running_{['', 'mean', 'var'][place]}'"):
            torch.func.grad(of_one)(given[place])
        assert torch.func.jvp(of_one, (given[place],), (given[place],))[1] == 0
    torch.testing.assert_close(
        torch.func.grad(lambda x: operator(x, *given[1:]).sum())(X),
        torch.func.grad(lambda x: evaluated(x, *given[1:]).sum())(X),
    )
