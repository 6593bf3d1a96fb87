"""How the value of a scalar function lies, given its operands: sums pass through what is linear, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opwright.ir.expressions.dtype import DType
from opwright.sharding.rules.lies import Kind


@dataclass(frozen=True, slots=True)
class Value:
    """How a value in a kernel lies.

    Attributes:
        kind: As of a buffer.
        power: As of a buffer.
        along: Whether it varies along the axis.
        is_zero: Whether it is the number zero, which is also a sum of zeros.
        why: What made it unknown.
    """

    kind: Kind = "same"
    power: int = 0
    along: bool = False
    is_zero: bool = False
    why: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether it is what the whole computation has."""
        return self.kind == "same" and not self.power


_LINEAR = frozenset({"negate", "conj", "real", "imag"})
_REPEATS = {"add": "sum", "subtract": "sum", "maximum": "maximum", "minimum": "minimum", "complex": "sum"}
_WORDS = {"sum": "a sum over it", "maximum": "a maximum over it", "minimum": "a minimum over it", "same": "its size"}


def combined(function: str, operands: Sequence[Value]) -> Value:
    """The value of a scalar function of operands."""
    along = any(operand.along for operand in operands)
    for operand in operands:
        if operand.kind == "unknown":
            return operand
    if all(operand.is_plain for operand in operands):
        return Value(along=along)
    if along and any(operand.kind != "same" for operand in operands):
        return _refused(function, operands, "is used along it again")
    found = _found(function, operands)
    return _refused(function, operands) if found is None else Value(*found, along)


def _found(function: str, operands: Sequence[Value]) -> tuple[Kind, int] | None:
    if function in _LINEAR and operands[0].kind in ("same", "sum"):
        return operands[0].kind, operands[0].power
    if function == "multiply":
        return _product(*operands)
    if function == "divide" and operands[1].kind == "same":
        return (operands[0].kind, operands[0].power - operands[1].power) if _scales(operands[0]) else None
    if function == "reciprocal" and operands[0].kind == "same":
        return "same", -operands[0].power
    if function == "where":
        return _alike(operands[1:], "") if operands[0].is_plain else None
    return _alike(operands, _REPEATS[function]) if function in _REPEATS else None


def _scales(operand: Value) -> bool:
    return operand.kind in ("same", "sum")


def _product(left: Value, right: Value) -> tuple[Kind, int] | None:
    if not (_scales(left) and _scales(right)) or "same" not in (left.kind, right.kind):
        return None
    return ("sum" if "sum" in (left.kind, right.kind) else "same"), left.power + right.power


def _alike(operands: Sequence[Value], kind: str) -> tuple[Kind, int] | None:
    """What several operands have in common; a zero is anything that a sum can be."""
    found = {(operand.kind, operand.power) for operand in operands if not operand.is_zero}
    if any(operand.is_zero for operand in operands) and any(of not in ("same", "sum") for of, _ in found):
        return None
    if len(found) != 1:
        return None
    (of, power) = next(iter(found))
    return (of, power) if kind in ("", of) or (of == "same" and kind == "sum") else None


def converted(operand: Value, source: DType, target: DType) -> Value:
    """The value of a conversion: rounding to integers, or to truth, is not linear."""
    if operand.is_plain or operand.kind == "unknown":
        return operand
    if target.is_floating or (target.is_complex and operand.kind == "sum"):
        return operand
    if source is target:
        return operand
    return _refused(f"conversion to {target.value}", [operand])


def reduced(function: str, value: Value, over_axis: bool) -> Value:
    """The value of a reduction, over the axis or not."""
    if value.kind == "unknown":
        return value
    if over_axis and value.kind == "same" and value.along:
        if function == "sum" or (function in ("maximum", "minimum") and not value.power):
            return Value(function, value.power)  # type: ignore[arg-type]  # the names are the same
        return Value("unknown", why=f"{function} reduces over it")
    if over_axis and value.kind == "same" and function in ("sum", "maximum", "minimum"):
        return Value("same", value.power + (function == "sum"))
    if value.is_plain or (function == "sum" and value.kind in ("same", "sum")) or function == value.kind:
        return Value(value.kind, value.power, value.along and not over_axis)
    return _refused(function, [value])


def _refused(function: str, operands: Sequence[Value], how: str = "") -> Value:
    part = next(operand for operand in operands if not operand.is_plain)
    word = _WORDS[part.kind]
    return Value("unknown", why=f"{word} {how}" if how else f"{function} takes {word}, and is not linear in it")
