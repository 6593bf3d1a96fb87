"""Bodies of loops are cut into pieces also where one assignment is longer than a piece should be."""

from __future__ import annotations

import pytest

from opwright.codegen.cpp.loops import pieces
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Local
from opwright.ir.program import Let


@pytest.mark.parametrize("lengths", [(200, 200), (200, 10, 300), (10, 300, 300, 10), (300,), (100, 100, 100, 100)])
def test_no_piece_is_empty_and_none_is_lost(lengths: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"value_{place}" for place in range(len(lengths))]
    values = [Local(name, DType.FLOAT32) for name in ("given", *names)]
    of_value = dict(zip(values, lengths, strict=False))
    monkeypatch.setattr(pieces, "work", of_value.__getitem__)
    lets = [Let(name, value) for name, value in zip(names, values, strict=False)]
    found = pieces.pieces_of(lets, values[-1:])
    assert all(piece.lets for piece in found)
    assert [let for piece in found for let in piece.lets] == lets
