"""Judge a package that a wheel has installed, where opwright is not: judge.py PACKAGE [quick] [cuda] CASE…

With "cuda" its kernels for GPUs are built to run on the processor, and are expected to serve what kernels serve.
Prints a report as JSON. It is run by a Python of its own, so it uses torch and the package alone.
"""

import importlib
import json
import platform
import sys
import warnings
from pathlib import Path

sys.modules["opwright"] = None  # importing it raises
warnings.filterwarnings("error", message=".* runs its references")

import torch  # noqa: E402


def randn(*shape, dtype=torch.float32):
    return torch.randn(*shape, dtype=dtype)


# The arguments of a call, and what serves it.
CASES = {
    "cell": ("cell", lambda: (randn(8, 15), randn(8, 5)), {}, "cpp"),
    "cell, strided": ("cell", lambda: (randn(15, 8).t(), randn(8, 10)[:, ::2]), {}, "cpp"),
    "cell, float64": (
        "cell",
        lambda: (randn(8, 15, dtype=torch.double), randn(8, 5, dtype=torch.double)),
        {},
        "composed",
    ),
    "cell, 3-dimensional": ("cell", lambda: (randn(2, 8, 15), randn(2, 8, 5)), {}, "composed"),
    "cell, empty": ("cell", lambda: (randn(0, 15), randn(0, 5)), {}, "composed"),
    "scale": ("scale", lambda: (randn(8, 5), 2.5), {}, "cpp"),
    "scale, by default": ("scale", lambda: (randn(8, 5),), {}, "cpp"),
    "scale, by keyword": ("scale", lambda: (), {"factor": -0.5, "x": randn(8, 5)}, "cpp"),
    "scale, many times": ("scale", lambda: (randn(8, 5), 2.5, -7), {}, "cpp"),
    "scale, true times": ("scale", lambda: (randn(8, 5), 2.5, True), {}, "composed"),
    "scale, infinite": ("scale", lambda: (randn(8, 5), float("inf")), {}, "composed"),
    "norm": ("norm", lambda: (randn(8, 5), randn(5), randn(5)), {}, "cpp"),
    "norm, another constant": ("norm", lambda: (randn(8, 5), randn(5), randn(5)), {"eps": 1e-3}, "composed"),
    "dropped": ("dropped", lambda: (randn(8, 5),), {}, "cpp"),
    "gathered": ("gathered", lambda: (randn(8, 5), torch.tensor([7, 0, 7])), {}, "cpp"),
    "gathered, out of range": ("gathered", lambda: (randn(8, 5), torch.tensor([7, 8, 7])), {}, "cpp"),
    "labelled": ("labelled", lambda: (randn(8, 5), torch.tensor([4, 0, 4])), {}, "cpp"),
    "checked": ("checked", lambda: (randn(8, 5), randn(5).abs() + 0.5), {}, "cpp"),
    "largest": ("largest", lambda: (randn(8, 5),), {}, "cpp"),
    "bounded": ("bounded", lambda: (randn(8, 5), True, "tanh"), {}, "cpp"),
    "bounded, otherwise": ("bounded", lambda: (randn(8, 5), False, "tanh"), {}, "cpp"),
    "bounded, not built": ("bounded", lambda: (randn(8, 5), False), {}, "composed"),
}


class Call:
    """A function and its arguments, to be called again with others in the place of those that have gradients."""

    def __init__(self, function, args, kwargs):
        self.function, self.args, self.kwargs = function, args, kwargs
        self.sources = [a for a in (*args, *kwargs.values()) if is_floating(a)]

    def __call__(self, *sources):
        torch.manual_seed(1)
        return self.without_seed(*sources)

    def without_seed(self, *sources):
        """The same for a compiler to look at."""
        given = iter(sources)
        args = [next(given) if is_floating(a) else a for a in self.args]
        kwargs = {key: next(given) if is_floating(a) else a for key, a in self.kwargs.items()}
        found = self.function(*args, **kwargs)
        return (found,) if isinstance(found, torch.Tensor) else tuple(found)

    def smooth(self, *sources):
        """The results that have gradients."""
        return tuple(result for result in self(*sources) if is_floating(result))


def is_floating(value):
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def leaves(call):
    return [source.detach().requires_grad_() for source in call.sources]


def forward(call):
    return call(*call.sources)


def backward(call):
    sources = leaves(call)
    results = call.smooth(*sources)
    # A sum has a gradient of stride 0.
    return torch.autograd.grad([r.sum() if p else (r * r).sum() for p, r in enumerate(results)], sources)


def part_of_backward(call):
    first, *rest = leaves(call)
    return torch.autograd.grad(call.smooth(first, *[source.detach() for source in rest])[0].sum(), first)


def twice_backward(call):
    sources = leaves(call)
    once = torch.autograd.grad(sum((r * r).sum() for r in call.smooth(*sources)), sources, create_graph=True)
    penalty = sum((gradient * gradient).sum() for gradient in once)
    return torch.autograd.grad(penalty, sources, materialize_grads=True)


def batch_of_gradients(call):
    sources = leaves(call)
    result = call.smooth(*sources)[0]
    batch = torch.stack([result.detach(), 2 * result.detach()])
    return torch.autograd.grad(result, sources, batch, is_grads_batched=True)


def map_of_backward(call):
    sources = leaves(call)
    result = call.smooth(*sources)[0]
    batch = torch.stack([result.detach(), 2 * result.detach()])
    return torch.vmap(lambda cotangents: torch.autograd.grad(result, sources, cotangents))(batch)


def forward_mode(call):
    return torch.func.jvp(call.smooth, tuple(call.sources), tuple(torch.cos(s) for s in call.sources))


def mapped(call):
    sources = [torch.stack([source, 2 * source]) for source in call.sources]
    return torch.vmap(call.smooth, randomness="same")(*sources)


def mapped_gradients(call):
    sources = [torch.stack([source, 2 * source]) for source in call.sources]
    return torch.vmap(torch.func.grad(lambda *s: call.smooth(*s)[0].sum()), randomness="same")(*sources)


def in_inference_mode(call):
    with torch.inference_mode():
        return call(*call.sources)


def under_autocast(call):
    with torch.autocast("cpu", torch.bfloat16):
        return call(*call.sources)


def without_data(call):
    args = [a.to("meta") if isinstance(a, torch.Tensor) else a for a in call.args]
    kwargs = {key: a.to("meta") if isinstance(a, torch.Tensor) else a for key, a in call.kwargs.items()}
    abstract = Call(call.function, args, kwargs)
    return [torch.zeros(result.shape, dtype=result.dtype) for result in abstract(*abstract.sources)]


def compiled(call, dynamic=None):
    torch._dynamo.reset()
    sources = leaves(call)
    function = torch.compile(call.without_seed, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    torch.manual_seed(1)
    results = [result for result in function(*sources) if is_floating(result)]
    return [*results, *torch.autograd.grad(sum((r * r).sum() for r in results), sources)]


def compiled_for_any_size(call):
    return compiled(call, dynamic=True)


def compiled_under_autocast(call):
    torch._dynamo.reset()
    function = torch.compile(call.without_seed, fullgraph=True, backend="aot_eager")
    torch.manual_seed(1)
    with torch.autocast("cpu", torch.bfloat16):
        return function(*call.sources)


EVERYWHERE = (
    forward,
    backward,
    part_of_backward,
    twice_backward,
    forward_mode,
    mapped,
    in_inference_mode,
    without_data,
)
RARELY = (batch_of_gradients, map_of_backward, mapped_gradients, under_autocast)
COMPILING = (compiled, compiled_for_any_size, compiled_under_autocast)
# What a kernel rounds differently in its result grows in what is made of derivatives of derivatives.
TOLERANCES = {twice_backward: {"rtol": 2e-5, "atol": 1e-4}}
# A random operation in a batch is one of another shape.
NOT_FOR_RANDOM = {mapped, mapped_gradients}


def judge(package, case, checks, kernels):
    name, make, kwargs, rung = CASES[case]
    rung = kernels if rung == "cpp" else rung
    torch.manual_seed(0)
    operator, reference = getattr(package, name), getattr(package.reference, name)
    overload = operator.overload
    args = make()
    failures = []
    for check in checks:
        if name == "dropped" and check in NOT_FOR_RANDOM:
            continue
        expected = result_of(check, Call(reference, args, kwargs))
        for spelling, function in (("op", operator), ("torch.ops", overload)):
            found = result_of(check, Call(function, args, kwargs))
            wrong = differences(found, expected, TOLERANCES.get(check, {}))
            failures += [f"{case}: {check.__name__} by {spelling}: {sentence}" for sentence in wrong]
            ran = not isinstance(found, str)
            if ran and check in (forward, backward) and spelling == "op" and operator.last_rung != rung:
                failures.append(f"{case}: {check.__name__} was served by {operator.last_rung}, not {rung}")
    return failures


def result_of(check, call):
    try:
        return check(call)
    except Exception as error:  # the reference must raise the same
        return f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"


def differences(found, expected, tolerances):
    if isinstance(found, str) or isinstance(expected, str):
        raised = [result.partition(":")[0] if isinstance(result, str) else None for result in (found, expected)]
        return [] if raised[0] == raised[1] else [f"{found} instead of {expected}"]
    try:
        torch.testing.assert_close(tuple(found), tuple(expected), equal_nan=True, **tolerances)
    except AssertionError as error:
        return ["; ".join(str(error).split("\n\n"))]
    return []


def main(name, *cases):
    package = importlib.import_module(name)
    quick = "quick" in cases
    checks = EVERYWHERE if quick else (*EVERYWHERE, *RARELY, *COMPILING)
    chosen = [case for case in cases if case in CASES] or list(CASES)
    kernels = "cuda" if "cuda" in cases else "cpp"
    failures = [failure for case in chosen for failure in judge(package, case, checks, kernels)]
    stamp = Path(package.__file__).parent / "stamp.json"
    levels = json.loads(stamp.read_text())["levels"]
    report = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cpu_level": package.cpu_level,
        "levels": levels,
        "judged": len(chosen),
        "failures": failures,
    }
    print(json.dumps(report))


main(*sys.argv[1:])
