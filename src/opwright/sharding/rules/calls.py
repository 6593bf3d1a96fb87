"""How the results of library operations lie: a row for each operation that is known; the others allow nothing.

Most rows are labels, one letter for each dimension: "mk,kn->mn". A label of the result may be spread; one that only
operands have is summed over, so its parts are addends. Operands after the labelled ones must not be spread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from opwright.ir import program as ir
from opwright.ir.expressions.integer import Integer
from opwright.ir.parts import parts_of
from opwright.sharding.rules.lies import SAME, At, Lies, unknown
from opwright.sharding.rules.reshaping import reshaped
from opwright.sharding.rules.sizes import Sizes, mentions


@dataclass(frozen=True, slots=True)
class Called:
    """A call, and what is known of its operands."""

    step: ir.Call
    buffers: Mapping[str, ir.Buffer]
    lies: Mapping[str, Lies]
    axis: str | None
    sizes: Sizes

    @property
    def tensors(self) -> list[str]:
        """The buffers among the operands, in order."""
        return [operand.buffer for operand in parts_of(self.step.operands, ir.TensorOperand)]

    def number(self, position: int) -> int | None:
        """An operand that is an integer."""
        operand = self.step.operands[position]
        return operand.value.constant if isinstance(operand, ir.SizeOperand) else None

    def refused(self, why: str) -> list[Lies]:
        """What its results are if they can be nothing else."""
        return [unknown(f"{self.step.function}: {why}")] * len(self.step.targets)


Row = Callable[[Called], "list[Lies]"]


def follow_call(called: Called) -> list[Lies]:
    """How what a call returns lies, result by result."""
    given = [called.lies[name] for name in called.tensors]
    for one in given:
        if one.kind == "unknown":
            return [one] * len(called.step.targets)
    row = _ROWS.get(called.step.function)
    if row is not None:
        return row(called)
    spread = any(mentions(called.sizes.spell(size), called.axis) for size in parts_of(called.step, Integer))
    if not spread and all(one.is_plain and one.at is None for one in given):
        return [SAME] * len(called.step.targets)
    return called.refused("nothing is known of its axes")


def _labelled(labels: str, linear: int = 0, only: str | None = None) -> Row:
    """A row of labels.

    Args:
        labels: One word for each operand that is a tensor, and for each result.
        linear: How many of the operands, from the first, the results are linear in, one by one.
        only: The labels that may be spread; None for all.
    """
    left, right = labels.split("->")
    operands, results = left.split(","), right.split(",")

    def row(called: Called) -> list[Lies]:
        return _follow_labels(called, operands, results, linear, only)

    return row


def _follow_labels(
    called: Called, operands: Sequence[str], results: Sequence[str], linear: int, only: str | None
) -> list[Lies]:
    given = [called.lies[name] for name in called.tensors]
    if any(one.at is not None for one in given[len(operands) :]) or any(not o.is_plain for o in given[len(operands) :]):
        return called.refused("an operand depends on the axis")
    spread = [(word[one.at.dimension], one.at) for word, one in zip(operands, given, strict=False) if one.at]
    letters = {letter for letter, _ in spread}
    if len(letters) > 1 or len({(at.inner, at.outer) for _, at in spread}) > 1:
        return called.refused("its operands are spread along different axes")
    letter = next(iter(letters), "")
    if any(letter in word and one.at is None for word, one in zip(operands, given, strict=False) if letter):
        return called.refused("one operand is spread along the axis, and another is not")
    if letter and only is not None and letter not in only:
        return called.refused("it uses the axis as a whole")
    sums = [place for place, one in enumerate(given[: len(operands)]) if not one.is_plain]
    is_sum = bool(letter) and all(letter not in word for word in results)
    if len(sums) > 1 or any(place >= linear or given[place].kind not in ("same", "sum") for place in sums):
        return called.refused("it is not linear in what is added up over the axis")
    if sums and given[sums[0]].kind == "sum" and letter:
        return called.refused("a sum over the axis is used along it again")
    if is_sum and linear < 2 and not (linear == 1 and letter in operands[0]):
        return called.refused("it uses the axis as a whole")
    kind = "sum" if is_sum or any(given[place].kind == "sum" for place in sums) else "same"
    power = given[sums[0]].power if sums else 0
    at = spread[0][1] if spread else None
    return [
        Lies(kind, At(word.index(letter), at.inner, at.outer) if at and letter in word else None, power)  # type: ignore[arg-type]
        for word in results
    ]


def _reshape(called: Called) -> list[Lies]:
    name = called.tensors[0]
    source, target = called.buffers[name].shape, called.step.targets[0].shape
    return [reshaped(called.lies[name], source, target, called.axis, called.sizes)]


def _every_dimension_but(position: int, linear: bool = False) -> Row:
    """A row for what works on one dimension, or on several: the integer operands at a position."""

    def row(called: Called) -> list[Lies]:
        given = called.lies[called.tensors[0]]
        rank = len(called.buffers[called.tensors[0]].shape)
        if not given.is_plain and not (linear and given.kind in ("same", "sum")):
            return called.refused("it is not linear in what is added up over the axis")
        if given.at is None:
            return [given] * len(called.step.targets)
        numbers = [n.constant for n in parts_of(called.step.operands[position], Integer)]
        if not numbers or None in numbers or given.at.dimension in [n % rank for n in numbers if n is not None]:
            return called.refused("it uses the axis as a whole")
        if any(len(target.shape) != rank for target in called.step.targets):
            return called.refused("nothing is known of its axes")
        return [given] * len(called.step.targets)

    return row


def _embedding(called: Called) -> list[Lies]:
    indices = called.tensors[1]
    rank = len(called.buffers[indices].shape)
    row = _labelled(f"vd,{_letters(rank)}->{_letters(rank)}d", linear=1, only=f"d{_letters(rank)}")
    return row(called) if called.lies[indices].is_plain else called.refused("its indices are parts of a sum")


def _embedding_backward(called: Called) -> list[Lies]:
    rank = len(called.buffers[called.tensors[1]].shape)
    if mentions(called.sizes.spell(called.step.targets[0].shape[0]), called.axis):
        return called.refused("it uses the axis as a whole")
    if any(one.value is True for one in parts_of(called.step.operands, ir.ConstantOperand)):
        return called.refused("it counts indices")
    return _labelled(f"{_letters(rank)}d,{_letters(rank)}->vd", linear=1)(called)


def _attention(called: Called) -> list[Lies]:
    if len(called.tensors) != 3:
        return called.refused("nothing is known of its axes with a mask")
    return _labelled("bhld,bhsd,bhse->bhle,bhl", only="bh")(called)


def _letters(count: int) -> str:
    return "ijklmnopq"[:count]


_elementwise: Row = lambda called: [called.lies[called.tensors[0]]] * len(called.step.targets)  # noqa: E731
_nothing: Row = lambda called: [SAME] * len(called.step.targets)  # noqa: E731

_ROWS: Mapping[str, Row] = {
    "aten::mm": _labelled("mk,kn->mn", linear=2),
    "aten::bmm": _labelled("bmk,bkn->bmn", linear=2),
    "aten::mv": _labelled("mk,k->m", linear=2),
    "aten::dot": _labelled("k,k->", linear=2),
    "aten::reshape": _reshape,
    "aten::view": _reshape,
    "aten::clone": _elementwise,
    "aten::contiguous": _elementwise,
    "aten::cumsum": _every_dimension_but(1, linear=True),
    "aten::flip": _every_dimension_but(1, linear=True),
    "aten::roll": _every_dimension_but(2, linear=True),
    "aten::cumprod": _every_dimension_but(1),
    "aten::logcumsumexp": _every_dimension_but(1),
    "aten::cummax": _every_dimension_but(1),
    "aten::cummin": _every_dimension_but(1),
    "aten::sort": _every_dimension_but(1),
    "aten::argsort": _every_dimension_but(1),
    "aten::topk": _every_dimension_but(2),
    "aten::embedding": _embedding,
    "aten::embedding_dense_backward": _embedding_backward,
    "aten::_scaled_dot_product_flash_attention_for_cpu": _attention,
    "aten::_assert_async": _nothing,
}
