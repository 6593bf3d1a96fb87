"""Random functions of tensors, for comparing what is derived from them with what they do.

A function is written statement by statement and run as it is written, so that every statement is one that torch takes.
It is a plain text: what fails can be read, cut down and kept as a case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import torch
from torch.nn import functional

Tensor = torch.Tensor
Sizes = dict[str, int]
Tensors = Sequence[Tensor | None]


def _reversed(tensor: Tensor) -> tuple[int, ...]:
    return tuple(reversed(range(tensor.ndim)))


# How an input lies in memory: made from a tensor that is larger where need be.
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "row-major": lambda t: t,
    "transposed": lambda t: t.mT.contiguous().mT if t.ndim > 1 else t,
    "every other": lambda t: torch.stack([t, t], -1)[..., 0],
    "offset": lambda t: torch.cat([t.flatten(), t.flatten()])[t.numel() :].view(t.shape),
    "expanded": lambda t: t[:1].expand(t.shape) if t.ndim else t,
    "reversed axes": lambda t: t.permute(_reversed(t)).contiguous().permute(_reversed(t)),
}


@dataclass(frozen=True, slots=True)
class Input:
    """A parameter: `shape` names sizes, or is 1 where it broadcasts."""

    name: str
    dtype: torch.dtype
    shape: tuple[str, ...]
    layout: str
    requires_grad: bool

    def make(self, sizes: Sizes, generator: torch.Generator) -> Tensor:
        shape = [1 if size == "1" else sizes[size] for size in self.shape]
        if self.dtype is torch.bool:
            made = torch.rand(shape, generator=generator) < 0.5
        elif self.dtype is torch.int64:
            made = torch.randint(-3, 4, shape, generator=generator)
        else:
            made = torch.randn(shape, generator=generator, dtype=self.dtype)
        return LAYOUTS[self.layout](made).detach().requires_grad_(self.requires_grad)


@dataclass(frozen=True, slots=True)
class RandomProgram:
    """A function with inputs to try it on.

    Attributes:
        text: Its source.
        inputs: Its parameters.
        sizes: The sizes it was written at.
    """

    text: str
    inputs: tuple[Input, ...]
    sizes: Sizes

    def function(self) -> Callable[..., Any]:
        namespace: dict[str, Any] = {"torch": torch, "functional": functional}
        exec(compile(self.text, "<random program>", "exec"), namespace)
        function: Callable[..., Any] = namespace["program"]
        return function

    @property
    def is_for_row_major(self) -> bool:
        """Whether kernels serve it only where inputs lie row by row: in-place changes may depend on the layout."""
        return bool(re.search(r"\w_\(", self.text))

    @property
    def gathers(self) -> bool:
        """Whether it reads by indices; kernels for GPUs do not, as they would have to wait for a check of them."""
        return bool(re.search(r"atleast_1d|index_select|embedding|gather", self.text))

    def arguments(self, sizes: Sizes, seed: int = 0) -> list[Tensor]:
        generator = torch.Generator().manual_seed(seed)
        return [given.make(sizes, generator) for given in self.inputs]


UNARY = (
    *("torch.sin({})", "torch.cos({})", "torch.tanh({})", "torch.sigmoid({})", "torch.exp(torch.tanh({}))"),
    *("torch.log1p({0} * {0})", "torch.sqrt({0} * {0} + 0.5)", "torch.erf({})", "torch.atan({})", "-{}", "2 - {}"),
    *("functional.elu({})", "functional.gelu({})", "functional.gelu({}, approximate='tanh')", "functional.silu({})"),
    *("functional.softplus({})", "{} ** 2", "{} ** 3", "torch.reciprocal({0} * {0} + 1)", "1 / ({0} * {0} + 1)"),
    *("torch.rsqrt({0} * {0} + 1)", "torch.expm1(torch.tanh({}))", "{} * 0.3", "{} / 3", "{}.double()", "{} + True"),
    *("torch.asinh({})", "functional.mish({})", "functional.hardswish({})", "torch.pow(2.0, torch.tanh({}))"),
)
# What jumps, and must be asked of values that have no rounding errors: eager's differ from ours.
UNARY_EXACT = (
    *("torch.abs({})", "torch.relu({})", "{}.clamp(-0.5, 0.75)", "{}.clamp(min=0.25)", "torch.sign({})"),
    *("torch.floor({})", "torch.round({})", "functional.leaky_relu({}, 0.1)", "-{}", "functional.hardtanh({})"),
    *("{}.to(torch.int64)", "torch.trunc({})", "{}.bool()", "functional.relu6({})"),
)
BINARY = ("{} + {}", "{} - {}", "{} * {}", "{0} / ({1} * {1} + 1)", "torch.atan2({}, {})", "torch.add({}, {}, alpha=2)")
BINARY_EXACT = ("torch.maximum({}, {})", "torch.minimum({}, {})")
COMPARISONS = ("{} < {}", "{} <= {}", "{} > {}", "{} >= {}", "{} == {}", "{} != {}")
LOGIC = ("{} & {}", "{} | {}", "{} ^ {}", "torch.logical_and({}, {})", "{} * {}", "{} + {}")
INTEGRAL = ("{} + {}", "{} - {}", "{} * {}", "torch.maximum({}, {})", "{} / ({} * 0 + 2)")
VIEWS = (
    *(
        "{}.mT",
        "{}.transpose(0, -1)",
        "{}[1:]",
        "{}[:-1]",
        "{}[..., ::2]",
        "{}[..., -2:]",
        "{}[0]",
        "{}.select(-1, -1)",
    ),
    *("{}.unsqueeze(0)", "{}.unsqueeze(-1)", "{0}.expand(2, *{0}.shape)", "{}.flatten()", "{}.flatten(0, 1)"),
    *(
        "{}.chunk(2, dim=-1)[0]",
        "{}.chunk(2, dim=0)[-1]",
        "{}.squeeze()",
        "{}.reshape(-1, 1)",
        "{}.flip(0)",
        "{}.flip(-1)",
    ),
    *(
        "{0}.reshape({0}.shape[0], -1)",
        "{}.contiguous()",
        "{0}.reshape(*{0}.shape[::-1])",
        "{0}.view({0}.shape[0], -1)",
    ),
    *("{}.movedim(0, -1)", "{0}.reshape(2, -1)", "{}.narrow(0, 1, 2)", "{}.diagonal()", "{}.unflatten(-1, (2, -1))"),
    *("torch.stack([{0}, {0}])", "{0}.repeat(2, *[1] * ({0}.ndim - 1))", "{}.split(2, dim=0)[0]"),
    *("torch.cat({}.chunk(2, dim=-1)[::-1], -1)", "torch.cat([{0}[{0}.shape[0] // 2 :], {0}[: {0}.shape[0] // 2]])"),
    "torch.stack((-{0}[..., 1::2], {0}[..., ::2]), -1).reshape({0}.shape)",
    "torch.stack(({0}[1::2], {0}[::2].sin()), 1).flatten(0, 1)",
)
REDUCTIONS = (
    "{}.sum(0)",
    "{}.sum(-1, keepdim=True)",
    "{}.mean(-1)",
    "{}.sum()",
    "torch.softmax({}, -1)",
    "{}.cumsum(0)",
    *(
        "{}.mean()",
        "{}.sum((0, -1))",
        "{}.mean(0, keepdim=True)",
        "{}.var(-1, correction=0)",
        "{}.var(0, correction=0)",
    ),
    *("torch.softmax({}, 0)", "torch.log_softmax({}, -1)", "{}.logsumexp(0)", "{}.logsumexp(-1, keepdim=True)"),
    *("functional.layer_norm({0}, {0}.shape[-1:])", "functional.normalize({}, dim=-1)", "(1 + 0.1 * {}).prod(-1)"),
)
REDUCTIONS_EXACT = ("{}.amax(-1)", "{}.amin(0)", "{}.amax()", "{}.amin((0, -1))", "{}.amax(0, keepdim=True)")
TRUTH_REDUCTIONS = ("{}.any(-1)", "{}.all(0)", "{}.any()", "{}.all(-1, keepdim=True)", "{}.sum(0)")
JOINS = ("torch.cat([{}, {}], dim=0)", "torch.cat([{}, {}], dim=-1)", "torch.stack([{}, {}], dim=0)")
CHOICES = ("torch.where({}, {}, {})", "torch.where({0}, {1}, 0.5)")
IN_PLACE = ("{0} * 1.5; {2}.mul_({1})", "{0} * 1.5; {2}.add_({1})", "{0}.exp().clamp(max=9); {2}.copy_({1})")
INDEXED = (
    # An index without dimensions is a Python int to torch, which is the reference's.
    *("{}[torch.atleast_1d({}.clamp(-2, 1))]", "{}[..., torch.atleast_1d({}.clamp(-2, 1))]"),
    "{}.index_select(-1, {}.flatten().clamp(0, 1))",
    *("functional.embedding({1}.clamp(0, 1), {0})", "{}.gather(-1, {}.clamp(0, 1))", "{}.gather(0, {} * 0 + 1)"),
    "torch.log_softmax({}, -1).gather(-1, {}.clamp(0, 1))",
)
PRODUCTS = ("{} @ {}", "{} @ {}.mT", "{}.mT @ {}")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which variables an operand may be."""

    floating: bool = False
    exact: bool = False
    dtype: torch.dtype | None = None
    rank: int | None = None

    def accepts(self, value: Tensor, exact: bool) -> bool:
        return (
            (value.is_floating_point() or not self.floating)
            and (exact or not self.exact)
            and self.dtype in (None, value.dtype)
            and self.rank in (None, value.ndim)
        )


@dataclass(frozen=True, slots=True)
class Form:
    """Statements of one kind: what follows `name = `, its operands, and whether it is exact where they are."""

    templates: tuple[str, ...]
    operands: tuple[Wanted, ...]
    exact: bool = False


ANY, REAL, EXACT_REAL = Wanted(), Wanted(floating=True), Wanted(floating=True, exact=True)
EXACT, TRUTH, WHOLE = Wanted(exact=True), Wanted(dtype=torch.bool), Wanted(dtype=torch.int64)
MATRIX = Wanted(floating=True, rank=2)

FORMS = (
    *[Form(UNARY, (REAL,))] * 3,
    Form(UNARY_EXACT, (EXACT_REAL,), exact=True),
    *[Form(BINARY, (REAL, ANY))] * 2,
    Form(BINARY_EXACT, (EXACT_REAL, EXACT_REAL), exact=True),
    Form(COMPARISONS, (EXACT, EXACT), exact=True),
    Form(LOGIC, (TRUTH, TRUTH), exact=True),
    Form(INTEGRAL, (WHOLE, WHOLE), exact=True),
    Form(CHOICES, (TRUTH, ANY, ANY), exact=True),
    *[Form(VIEWS, (ANY,), exact=True)] * 4,
    Form(JOINS, (ANY, ANY), exact=True),
    Form(INDEXED, (REAL, WHOLE)),
    Form(PRODUCTS, (MATRIX, MATRIX)),
    *[Form(REDUCTIONS, (REAL,))] * 2,
    Form(REDUCTIONS_EXACT, (EXACT_REAL,), exact=True),
    Form(TRUTH_REDUCTIONS, (TRUTH,), exact=True),
    Form(IN_PLACE, (REAL, REAL)),
)


@dataclass
class Author:
    """Writes one function, keeping the value of every variable."""

    random: Random
    values: dict[str, Tensor]
    lines: list[str] = field(default_factory=list)
    exact: set[str] = field(default_factory=set)

    def write(self) -> None:
        """Add one statement; one that torch refuses, or whose result is large or empty, is left out."""
        form = self.random.choice(FORMS)
        names = [self._gather(wanted) for wanted in form.operands]
        if not all(names):
            return
        name = f"v{len(self.lines)}"
        statement = f"{name} = " + self.random.choice(form.templates).format(*names, name)
        namespace: dict[str, Any] = {"torch": torch, "functional": functional, **self.values}
        try:
            exec(statement, namespace)
        except (RuntimeError, IndexError, TypeError, ValueError):
            return
        made = namespace[name]
        if 0 < made.numel() < 2000 and (made.double().abs() < 1e4).all():
            self.values[name] = made
            self.lines.append(statement)
            if form.exact and self.exact.issuperset(names):
                self.exact.add(name)

    def _gather(self, wanted: Wanted) -> str:
        found = [name for name, value in self.values.items() if wanted.accepts(value, name in self.exact)]
        return self.random.choice(found) if found else ""


def random_program(seed: int, statements: int = 10) -> RandomProgram:
    """Write the function of a seed; the same one every time."""
    random = Random(seed)
    sizes = {name: random.randint(2, 7) for name in "ABC"}
    dtype = random.choice([torch.float32, torch.float64])
    inputs = [_input(f"x{position}", random, dtype) for position in range(random.randint(1, 4))]
    inputs[0] = Input("x0", dtype, inputs[0].shape or ("A", "B"), inputs[0].layout, True)
    drafts = RandomProgram("", tuple(inputs), sizes).arguments(sizes)
    author = Author(random, {given.name: value.detach() for given, value in zip(inputs, drafts, strict=True)})
    author.exact.update(author.values)
    arguments = [author.values[given.name] for given in inputs]
    made: list[str] = []
    while len(author.lines) < statements or not made:  # a statement may give an argument itself
        author.write()
        made = [name for name, value in author.values.items() if not any(value is argument for argument in arguments)]
    returned = sorted({made[-1], *random.sample(made, min(2, len(made)))})
    parameters = ", ".join(f"{given.name}: torch.Tensor" for given in inputs)
    body = "\n".join(f"    {line}" for line in author.lines)
    results = ", ".join(f"{name}.clone()" for name in returned)  # views of one memory would be the reference's
    text = f"def program({parameters}):\n{body}\n    return ({results},)\n"
    return RandomProgram(text, tuple(inputs), sizes)


def _input(name: str, random: Random, dtype: torch.dtype) -> Input:
    shape = tuple(random.choice(["A", "B", "C", "A", "B", "1"]) for _ in range(random.choice([0, 1, 2, 2, 2, 3])))
    kind = random.choice([dtype, dtype, dtype, torch.int64, torch.bool])
    layout = random.choice(list(LAYOUTS))
    return Input(name, kind, shape, layout, kind is dtype and random.random() < 0.8)


def other_sizes(program: RandomProgram, seed: int) -> Sizes:
    """Sizes that break some of the assumptions of the trace: two that are equal, one that is 1."""
    random = Random(seed)
    return {name: random.choice([1, 2, 2, 3, 5]) for name in program.sizes}


def runs(program: RandomProgram, sizes: Sizes, seed: int) -> bool:
    """Whether eager takes such arguments: an index may be out of range."""
    try:
        outputs_and_gradients(program.function(), program.arguments(sizes, seed))
    except (RuntimeError, IndexError, TypeError, ValueError):
        return False
    return True


def outputs_and_gradients(
    function: Callable[..., Any], arguments: Sequence[Tensor], *, exactly: bool = False, twice: bool = False
) -> list[Tensors]:
    """Run forward and backward, and backward through that; `exactly` in float64."""
    given = [
        (a.double() if exactly and a.is_floating_point() else a).detach().requires_grad_(a.requires_grad)
        for a in arguments
    ]
    outputs = function(*given)
    differentiable = [output for output in outputs if output.requires_grad]
    generator = torch.Generator().manual_seed(1)
    cotangents = [torch.randn(o.shape, generator=generator, dtype=torch.float64).to(o) for o in differentiable]
    wanted = [tensor for tensor in given if tensor.requires_grad]
    if not differentiable:
        return [outputs, *[[None] * len(wanted)] * (1 + twice)]
    gradients = torch.autograd.grad(differentiable, wanted, cotangents, allow_unused=True, create_graph=twice)
    if not twice:
        return [outputs, gradients]
    # A sum of sines: the second derivatives differ from row to row, whatever the gradients are.
    flowing = [gradient.sin().sum() for gradient in gradients if gradient is not None and gradient.requires_grad]
    second = torch.autograd.grad(flowing, wanted, allow_unused=True) if flowing else [None] * len(wanted)
    return [outputs, gradients, second]
