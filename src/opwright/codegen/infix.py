"""Text with operators: how tightly each binds says where parentheses are needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LOOSEST, TIGHTEST = 0, 10


@dataclass(frozen=True, slots=True)
class Spelled:
    """A piece of text and how tightly it binds."""

    text: str
    level: int = TIGHTEST


@dataclass(frozen=True, slots=True)
class Template:
    """Text with a `{}` for each operand.

    Attributes:
        text: The text.
        level: How tightly the whole binds.
        needs: How tightly each operand must bind to stand without parentheses.
    """

    text: str
    level: int
    needs: tuple[int, ...]

    def fill(self, operands: Sequence[Spelled]) -> Spelled:
        """Put operands in, with parentheses where they are needed."""
        parts = [
            operand.text if operand.level >= need else f"({operand.text})"
            for operand, need in zip(operands, self.needs, strict=True)
        ]
        return Spelled(self.text.format(*parts), self.level)


def infix(operator: str, level: int) -> Template:
    """A binary operator that is read from the left: `a - b - c`."""
    return Template(f"{{}} {operator} {{}}", level, (level, level + 1))


def comparison(operator: str, level: int) -> Template:
    """A binary operator that does not chain."""
    return Template(f"{{}} {operator} {{}}", level, (level + 1, level + 1))


def prefix(operator: str, level: int) -> Template:
    """An operator in front."""
    return Template(f"{operator}{{}}", level, (level,))


def postfix(text: str) -> Template:
    """Something written behind, such as `.to(...)`."""
    return Template(f"{{}}{text}", TIGHTEST, (TIGHTEST,))


def call(name: str, arity: int) -> Template:
    """A function with its operands in brackets."""
    return Template(f"{name}({', '.join(['{}'] * arity)})", TIGHTEST, (LOOSEST,) * arity)
