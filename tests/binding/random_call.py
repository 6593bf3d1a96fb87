"""Random signatures with functions of them, and random calls: by position, keyword and default, of all kinds."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

import numpy
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from opwright.api.operator import Operator
from opwright.settings import Settings


class Pair(NamedTuple):
    """Two tensors."""

    a: Tensor
    b: Tensor


class Whole(enum.IntEnum):
    """An int that is of no plain type."""

    TWO = 2


class Fraction(float):
    """A float that is of no plain type."""


class Tensors:
    """Makes the same tensors in the same order."""

    def __init__(self, seed: int, *, gradients: bool) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self._gradients = gradients

    def __call__(self) -> Tensor:
        """Make the next one."""
        return torch.randn(2, 3, generator=self._generator).requires_grad_(self._gradients)

    def mask(self) -> Tensor:
        """Make a truth value for each element."""
        return torch.rand(2, 3, generator=self._generator) < 0.5


Make = Callable[[Tensors], Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of parameters.

    Attributes:
        annotation: How it is annotated; empty if it is not.
        statement: What is computed with `NAME`.
        values: What it is given in calls, most of which kernels serve.
        default: Its default, as text; empty if it has none.
        odd: What a kernel is not for.
        flat: Whether it stands beside arguments that change.
    """

    annotation: str
    statement: str
    values: tuple[Make, ...]
    default: str = ""
    odd: tuple[Make, ...] = ()
    flat: bool = True


def _always(*values: Any) -> tuple[Make, ...]:
    return tuple([lambda _, value=value: value for value in values])


_NO_TENSORS = _always(2.0, None, "text")
_NO_FLOATS = (
    *_always(True, numpy.float64(0.5), numpy.float32(0.5), Fraction(0.5), 3, 1e39, float("inf"), None),
    lambda t: torch.tensor(0.5),
)
_NO_INTS = (*_always(True, numpy.int64(2), Whole.TWO, 10**30, -(2**63), 1.0), lambda t: torch.tensor(2))

KINDS = {
    "tensor": Kind("Tensor", "total = total * NAME", (lambda t: t(),), odd=_NO_TENSORS),
    "mask": Kind("Tensor", "total = torch.where(NAME, total, -total)", (lambda t: t.mask(),)),
    "perhaps": Kind(
        "Tensor | None",
        "total = total if NAME is None else total + NAME",
        (lambda t: None, lambda t: t()),
        "None",
    ),
    "float": Kind("float", "total = total * NAME + 1", _always(0.5, 1.5, 0.0, -0.0, float("nan")), "0.5", _NO_FLOATS),
    "signed": Kind("float", "total = total / NAME if NAME > 0 else total - NAME", _always(0.5, 2.0, -1.0), "0.5"),
    "int": Kind("int", "total = total + NAME", _always(2, -1, 0, 7), "2", _NO_INTS),
    "divisor": Kind("int", "total = total * (12 // NAME) if NAME < 9 else total", _always(2, 3, 11), "4"),
    "flag": Kind("bool", "total = torch.sin(total) if NAME else total", _always(True, False), "True", _always(1, 0.0)),
    "word": Kind("str", "total = total.tanh() if NAME == 'tanh' else -total", _always("tanh", "".join("ab")), "'tanh'"),
    "untold": Kind("", "total = total * NAME", _always(0.25, 2), "1.5", (lambda t: t(),), flat=False),
    "list": Kind(
        "list[Tensor]",
        "total = sum([part * part for part in NAME], total)",
        (lambda t: [t()], lambda t: [t(), t()]),
        odd=(lambda t: (t(),), lambda t: []),
        flat=False,
    ),
    "tuple": Kind("tuple[Tensor, float]", "total = total + NAME[0] * NAME[1]", (lambda t: (t(), 0.5),), flat=False),
    "dict": Kind(
        "dict[str, Tensor]",
        "total = total + NAME['a'] / (1 + NAME['b'] * NAME['b'])",
        (lambda t: {"a": t(), "b": t()}, lambda t: {"b": t(), "a": t()}),
        flat=False,
    ),
    "named": Kind("Pair", "total = total + NAME.a * NAME.b", (lambda t: Pair(t(), t()),), flat=False),
    "deep": Kind(
        "dict[str, list[Pair]]", "total = total * NAME['a'][0].b", (lambda t: {"a": [Pair(t(), t())]},), flat=False
    ),
}
RESULTS = (
    ("None", "None"),
    ("Tensor", "total"),
    ("Tensor", "total"),
    ("tuple[Tensor, Tensor]", "total, total * 2"),
    ("list[Tensor]", "[total, total]"),
    ("dict[str, Tensor]", "{'b': total, 'a': total.exp()}"),
    ("Pair", "Pair(total, first)"),
    ("", "{'deep': [Pair(total.exp(), total)], 'first': first, 'one': 1.0, 'none': None}"),
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One of a random function.

    Attributes:
        name: What it is called.
        kind: What it is given.
        place: "plain", "keyword" if it is given by keyword only, "rest" for `*rest`, "named" for `**named`.
    """

    name: str
    kind: Kind
    place: str


@dataclass(frozen=True, slots=True)
class RandomFunction:
    """A function, and the parameters to call it with.

    Attributes:
        name: What it is called.
        text: Its definition.
        parameters: The same as data.
        mutates: What it changes.
    """

    name: str
    text: str
    parameters: tuple[Parameter, ...]
    mutates: tuple[str, ...]

    def operator(self, settings: Settings) -> Operator:
        """Make an operator of it."""
        namespace = {"torch": torch, "Tensor": Tensor, "Pair": Pair}
        exec(self.text, namespace)
        return Operator(namespace[self.name], mutates=self.mutates, settings=settings)


@dataclass(frozen=True, slots=True)
class RandomCall:
    """How a function is called.

    Attributes:
        positional: What makes the arguments that are given by position.
        by_keyword: What makes those given by keyword.
        gradients: Whether tensors require gradients.
        seed: Of the tensors.
        is_odd: Whether it may be wrong, or none for a kernel.
    """

    positional: tuple[Make, ...]
    by_keyword: tuple[tuple[str, Make], ...]
    gradients: bool
    seed: int
    is_odd: bool

    def arguments(self, changed: bool) -> tuple[list[Any], dict[str, Any], list[Tensor]]:
        """Make new ones; also the tensors in them. Where some change, they are none that torch keeps from changing."""
        tensors = Tensors(self.seed, gradients=self.gradients)
        args = [make(tensors) for make in self.positional]
        kwargs = {name: make(tensors) for name, make in self.by_keyword}
        leaves = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        if changed:
            args = [arg * 1 if isinstance(arg, Tensor) and arg.is_floating_point() else arg for arg in args]
            kwargs = {n: a * 1 if isinstance(a, Tensor) and a.is_floating_point() else a for n, a in kwargs.items()}
        return args, kwargs, leaves


def random_function(seed: int) -> RandomFunction:
    """Make one."""
    random = Random(seed)
    changes = random.random() < 0.25
    names = [name for name, kind in KINDS.items() if kind.flat or not changes]
    parameters = [Parameter("first", KINDS["tensor"], "plain")]
    for k in range(random.randint(1, 3)):
        kind = KINDS[random.choice(names)]
        parameters.append(Parameter(f"given_{k}", kind, random.choice(["plain", "plain", "keyword"])))
    order = {"plain": 0, "rest": 2, "keyword": 3, "named": 4}
    if not changes and random.random() < 0.2:
        parameters.append(Parameter("rest", KINDS["tensor"], "rest"))
    if not changes and random.random() < 0.2:
        parameters.append(Parameter("named", KINDS["tensor"], "named"))
    parameters.sort(key=lambda p: (order[p.place], p.place == "plain" and bool(p.kind.default)))
    annotation, result = random.choice(RESULTS[:4] if changes else RESULTS[1:])
    body = ["total = first.mul_(0.5).add_(1)"] if changes else ["total = first * 1.5"]
    wanted = ["first.add_(total)"] if changes and result == "None" else []
    for parameter in parameters[1:]:
        body.append(_statement(parameter))
    if random.random() < 0.2:
        body.append("total = total + torch.rand_like(total)")
    returns = f" -> {annotation}" if annotation else ""
    lines = [f"def calls_{seed}({_spelled(parameters)}){returns}:", *body, *wanted, f"return {result}"]
    return RandomFunction(
        f"calls_{seed}", "\n    ".join(lines) + "\n", tuple(parameters), ("first",) if changes else ()
    )


def _statement(parameter: Parameter) -> str:
    match parameter.place:
        case "rest":
            return "total = sum(rest, total)"
        case "named":
            return "total = sum(named.values(), total)"
        case _:
            return parameter.kind.statement.replace("NAME", parameter.name)


def _spelled(parameters: Sequence[Parameter]) -> str:
    spelled = []
    for parameter in parameters:
        if parameter.place == "keyword" and not any(word.startswith("*") for word in spelled):
            spelled.append("*")
        star = {"rest": "*", "named": "**"}.get(parameter.place, "")
        annotation = f": {parameter.kind.annotation}" if parameter.kind.annotation else ""
        default = f" = {parameter.kind.default}" if parameter.kind.default and not star else ""
        spelled.append(f"{star}{parameter.name}{annotation}{default}")
    return ", ".join(spelled)


def random_call(function: RandomFunction, random: Random) -> RandomCall:
    """Make a call of a function; one in four is odd."""
    is_odd = random.random() < 0.25
    positional: list[Make] = []
    by_keyword: list[tuple[str, Make]] = []
    odd = random.choice(function.parameters) if is_odd else None
    for parameter in function.parameters:
        values = parameter.kind.odd if parameter is odd and parameter.kind.odd else parameter.kind.values
        if parameter.place in ("rest", "named"):
            for k in range(random.randint(0, 2)):
                if parameter.place == "named":
                    by_keyword.append((f"more_{k}", values[0]))
                elif len(positional) >= function.parameters.index(parameter):
                    positional.append(values[0])
            continue
        if parameter.kind.default and parameter is not odd and random.random() < 0.3:
            continue
        is_next = parameter.place == "plain" and len(positional) == function.parameters.index(parameter)
        make = random.choice(values)
        if is_next and random.random() < 0.7:
            positional.append(make)
        else:
            by_keyword.append((parameter.name, make))
    if is_odd and random.random() < 0.3:
        by_keyword.append(
            (random.choice([*(p.name for p in function.parameters), "unheard"]), KINDS["tensor"].values[0])
        )
        by_keyword = list(dict(by_keyword).items())
    random.shuffle(by_keyword)
    return RandomCall(tuple(positional), tuple(by_keyword), random.random() < 0.5, random.randrange(100), is_odd)


def outcome(function: Operator, call: RandomCall) -> Any:
    """What a call gives, as plain data: values bit by bit, types, identities, gradients; or what it raises."""
    changed = bool(getattr(function, "_mutated", ()))
    args, kwargs, leaves = call.arguments(changed)
    given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    torch.manual_seed(call.seed)
    try:
        result = function(*args, **kwargs)
        shown = [function.last_rung, _shown(result, given), [_bits(tensor) for tensor in given]]
        outputs = [
            o for o in tree_leaves(result) if isinstance(o, Tensor) and o.requires_grad and o.grad_fn is not None
        ]
        if outputs:
            total = sum([(output * output.detach().cos()).sum() for output in outputs])
            wanted = [leaf for leaf in leaves if leaf.requires_grad]
            shown += [None if g is None else _bits(g) for g in torch.autograd.grad(total, wanted, allow_unused=True)]
        return shown
    except Exception as error:
        return type(error), str(error)


def _shown(value: Any, given: Sequence[Tensor]) -> Any:
    if isinstance(value, Tensor):
        places = [place for place, tensor in enumerate(given) if tensor is value]
        return ("argument", places) if places else ("tensor", value.requires_grad, value.is_leaf, _bits(value))
    if isinstance(value, dict):
        return type(value), [(key, _shown(member, given)) for key, member in value.items()]
    if isinstance(value, (tuple, list)):
        return type(value), [_shown(member, given) for member in value]
    return type(value), repr(value)


def _bits(tensor: Tensor) -> Any:
    detached = tensor.detach().contiguous()
    return tensor.dtype, tuple(tensor.shape), detached.numpy().tobytes()
