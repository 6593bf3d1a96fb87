"""Random functions of rows: reductions, and what is made of rows and of what they reduce to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

Function = Callable[..., tuple[Tensor, ...]]

# {f} and {g} are matrices, {r} and {s} columns, and w is a row.
SCALED = ("{f} * torch.arange({f}.shape[-1])", "{f} * 7.3", "{f} * {g} * 5", "{f} + w * 8")
MATRICES = (
    *SCALED,
    *("{f} + {g}", "{f} * {g}", "{f} * w", "{f}.exp()", "{f}.tanh() * 5", "torch.sigmoid({f})", "{f}.square()"),
    *("{f} - {r}", "({f} - {r}).exp()", "{f} * {r}", "{f} / ({r} * {r} + 1)", "{f} - {f}.mean(0)"),
    *(
        "torch.softmax({f}, -1)",
        "torch.log_softmax({f}, -1)",
        "torch.softmax({f}, 0)",
        "({f}.softmax(-1) + 0.01).log()",
    ),
    *("functional.normalize({f}, dim=-1)", "functional.layer_norm({f}, {f}.shape[-1:])"),
    "torch.where({f} > 0, {f}, {f} * 0.1)",
)
COLUMNS = (
    *["{f}.logsumexp(-1, keepdim=True)"] * 3,
    *("{f}.sum(-1, keepdim=True)", "{f}.mean(-1, keepdim=True)", "{f}.norm(dim=-1, keepdim=True)"),
    *("{f}.var(-1, correction=0, keepdim=True)", "({f}.var(-1, correction=0, keepdim=True) + 0.1).sqrt()"),
    *("{f}.amax(-1, keepdim=True)", "(1 + 0.1 * {f}.tanh()).prod(-1, keepdim=True)"),
    *("functional.cosine_similarity({f}, {g}, -1).unsqueeze(-1)", "(({f} - {r}).exp() * {f}).sum(-1, keepdim=True)"),
    *("{f}.logsumexp(0, keepdim=True).mean(-1, keepdim=True)", "{f}.square().mean(-1, keepdim=True).rsqrt()"),
    *("{r} * 2", "{r}.tanh()", "{r} * {s}", "{r} - {s}"),
)
MOST = 200.0  # in magnitude, of every value on the way


@dataclass(frozen=True, slots=True)
class RandomRows:
    """A random function.

    Attributes:
        text: Its source.
        length: The length of its rows.
    """

    text: str
    length: int

    def function(self) -> Function:
        """Define it."""
        namespace: dict[str, Any] = {"torch": torch, "functional": functional}
        exec(compile(self.text, "<random rows>", "exec"), namespace)
        found: Function = namespace["rows"]
        return found


def arguments(length: int, seed: int, rows: int | None = None) -> list[Tensor]:
    """Two matrices and a row, some 4,000 elements each matrix unless a number of rows is given."""
    generator = torch.Generator().manual_seed(seed)
    shape = (rows or max(8, 4000 // length), length)
    return [torch.randn(size, generator=generator, dtype=torch.float64) for size in (shape, shape, shape[1:])]


def random_rows(seed: int, length: int) -> RandomRows:
    """Write the function of a seed; the same one every time."""
    random = Random(seed)
    values = dict(zip("xyw", arguments(length, 0, rows=16), strict=True))
    matrices, columns, lines = ["x", "y"], list[str](), list[str]()
    statements = random.randint(2, 5)
    while len(lines) < statements:
        makes_column = bool(lines) and random.random() < 0.5
        template = random.choice(COLUMNS if makes_column else MATRICES if lines else SCALED)
        if not columns and ("{r}" in template or "{s}" in template):
            continue
        operands = {"f": _chosen(random, matrices), "g": random.choice(matrices)}
        if columns:
            operands |= {"r": _chosen(random, columns), "s": random.choice(columns)}
        statement = template.format(**operands)
        value = eval(statement, {"torch": torch, "functional": functional}, values)
        if value.isfinite().all() and value.abs().max() < MOST:
            name = f"v{len(lines)}"
            lines.append(f"    {name} = {statement}\n")
            values[name] = value
            (columns if makes_column else matrices).append(name)
    made = [f"v{position}" for position in range(statements)]
    returned = sorted({made[-1], *random.sample(made, random.randint(0, 2))})
    parameters = ", ".join(f"{name}: torch.Tensor" for name in "xyw")
    return RandomRows(f"def rows({parameters}):\n{''.join(lines)}    return ({', '.join(returned)},)\n", length)


def _chosen(random: Random, names: list[str]) -> str:
    """The latest more often than others."""
    return names[-1] if random.random() < 0.6 else random.choice(names)
