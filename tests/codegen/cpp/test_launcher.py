"""Functions of a Program that another source calls."""

import torch

from opwright.codegen.cpp.launcher import emit_launcher, launcher_signature
from opwright.codegen.cpp.program import emit_program
from opwright.codegen.cpp.used import used
from opwright.passes.order import optimize
from tests.derived import lowered, specs_of


def test_declarations_that_nothing_reads_are_left_out():
    lines = [
        "const Tensor& x = given[0];",
        "const Tensor& y = given[1];",
        "const Size y_size_0 = y.size(0);",
        "use(x);",
    ]
    assert used(lines) == ["const Tensor& x = given[0];", "use(x);"]


def double_sum(x):
    return (x * 2).sum(-1) + 1


def test_it_is_what_a_library_is_made_of_but_for_its_registration():
    program = optimize(lowered(double_sum, specs_of(["x"], [torch.ones(4, 6)])))
    text = emit_launcher(program)
    assert text.count(launcher_signature("program")) == 1
    assert f"static {launcher_signature('program')}" not in text
    assert (
        text.replace(launcher_signature("program"), f"static {launcher_signature('program')}")
        in emit_program(program).text
    )
    for word in ("Registration", "on_stack", "namespace opwright", "#include"):
        assert word not in text


def test_a_long_launcher_is_compiled_as_it_is_written():
    def sums(x, w, count):
        for _ in range(count):
            x = (x @ w).sin()
        return x

    given = specs_of(["x", "w"], [torch.ones(4, 4), torch.ones(4, 4)])
    for count, is_long in ((2, False), (40, True)):
        program = optimize(lowered(lambda x, w, count=count: sums(x, w, count), given))
        assert ("OPWRIGHT_AS_WRITTEN\nstatic bool program(" in emit_program(program).text) == is_long
