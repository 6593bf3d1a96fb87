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

from tests.random_forms import FORMS, Form, Wanted

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
        return bool(re.search(r"\w_\(|\] [-+*]?= ", self.text))

    @property
    def gathers(self) -> bool:
        """Whether it reads by indices; kernels for GPUs do not, as they would have to wait for a check of them."""
        return bool(re.search(r"atleast_1d|index_select|embedding|gather", self.text))

    def arguments(self, sizes: Sizes, seed: int = 0) -> list[Tensor]:
        generator = torch.Generator().manual_seed(seed)
        return [given.make(sizes, generator) for given in self.inputs]


@dataclass
class Author:
    """Writes one function, keeping the value of every variable."""

    random: Random
    values: dict[str, Tensor]
    forms: Sequence[Form] = FORMS
    lines: list[str] = field(default_factory=list)
    exact: set[str] = field(default_factory=set)

    def write(self) -> None:
        """Add one statement; one that torch refuses, or whose result is large or empty, is left out."""
        form = self.random.choice(self.forms)
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


def random_program(seed: int, statements: int = 10, forms: Sequence[Form] = FORMS) -> RandomProgram:
    """Write the function of a seed with statements of some forms; the same one every time."""
    random = Random(seed)
    sizes = {name: random.randint(2, 7) for name in "ABC"}
    dtype = random.choice([torch.float32, torch.float64])
    inputs = [_input(f"x{position}", random, dtype) for position in range(random.randint(1, 4))]
    inputs[0] = Input("x0", dtype, inputs[0].shape or ("A", "B"), inputs[0].layout, True)
    drafts = RandomProgram("", tuple(inputs), sizes).arguments(sizes)
    author = Author(random, {given.name: value.detach() for given, value in zip(inputs, drafts, strict=True)}, forms)
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
    if not flowing:  # a gradient that is constant requires none in kernels
        return [outputs, gradients, [torch.zeros_like(tensor) for tensor in wanted]]
    return [outputs, gradients, torch.autograd.grad(flowing, wanted, materialize_grads=True)]
