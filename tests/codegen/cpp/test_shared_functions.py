from __future__ import annotations

import torch

from opwright.codegen.cpp.loops.pieces import MOST_WORK, is_long, pieces_of, with_results
from opwright.codegen.cpp.program import emit_program
from opwright.codegen.placeholders import placeholder, without_names
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Load, Local, apply
from opwright.ir.program import Let
from opwright.passes.loops.repeated_work import work
from opwright.passes.order import optimize
from tests.passes.programs import lowered_from


def layers(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.sin(torch.tanh(torch.tanh(torch.tanh(x @ y) @ y) @ y) @ y)


def test_equal_kernels_share_a_function():
    program = optimize(lowered_from(layers, torch.zeros(6, 4), torch.zeros(4, 4)), "cpp")
    text = emit_program(program).text
    assert text.count("for_each_row(") == 4
    assert text.count("_row(Size count") == 2


def test_functions_are_equal_if_they_differ_in_names_alone():
    a, b, c = (placeholder(name) for name in "abc")
    first = without_names(f"// one\nvoid f_{a}() {{ {a}_row[j] = {b}_row[j] + {b}_row[j]; }}", f"f_{a}")
    assert first == without_names(f"void g_{c}() {{ {c}_row[j] = {a}_row[j] + {a}_row[j]; }}", f"g_{c}")
    assert first != without_names(f"void g_{c}() {{ {c}_row[j] = {a}_row[j] + {b}_row[j]; }}", f"g_{c}")
    assert first != without_names(f"void g_{c}() {{ {c}_row[j] = {c}_row[j] + {c}_row[j]; }}", f"g_{c}")
    assert first != without_names(f"void g_{c}() {{ {c}_row[j] = {a}_row[j] - {a}_row[j]; }}", f"g_{c}")


def test_pieces_are_given_what_they_need():
    x = Local("x", DType.FLOAT32)
    lets = [Let("x", Load("x", (), DType.FLOAT32))]
    for step in range(60):
        lets.append(Let(f"value_{step}", apply("tanh", apply("add", Local(lets[-1].name, DType.FLOAT32), x))))
    last = Local(lets[-1].name, DType.FLOAT32)
    assert is_long(lets, [last])
    given, results = with_results(lets, ["y", "z"], [apply("exp", last), last])
    assert results == [Local("y_result", DType.FLOAT32), last]
    pieces = pieces_of(given, results)
    assert [let.name for piece in pieces for let in piece.lets] == [let.name for let in given[1:]]
    assert all(sum(work(let.value) for let in piece.lets) <= MOST_WORK for piece in pieces[:-1])
    known = set()
    for piece in pieces:
        assert {let.name for let in piece.given} <= known
        assert [let.name for let in piece.loads] == ["x"]
        known |= {let.name for let in piece.kept}
    assert all(len(piece.kept) == 1 for piece in pieces[:-1])
