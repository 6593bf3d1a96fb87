"""Placeholders get names that nothing else in the scope has, and the user's own where they are free."""

from __future__ import annotations

import pytest

from opwright.codegen.allocator import allocate
from opwright.codegen.cpp.names import CPP
from opwright.codegen.placeholders import columns, plain
from opwright.codegen.python.names import PYTHON
from opwright.errors import InternalError

# Draft → text.
CASES = {
    "const Size ᐊxᐅ = 0;": "const Size x = 0;",
    "for (Size j = begin; j < end; ++j) ᐊendᐅ += ᐊjᐅ;": "for (Size j = begin; j < end; ++j) end_1 += j_1;",
    "Size ᐊxᐅ_sizes = ᐊx_sizesᐅ;": "Size x_sizes_1 = x_sizes;",
    "Size ᐊendᐅ = end + ᐊend_1ᐅ;": "Size end_2 = end + end_1;",
    "float ᐊintᐅ = ᐊerrnoᐅ + ᐊNULLᐅ;": "float int_1 = errno_1 + NULL_1;",
    "float ᐊ_xᐅ = ᐊxᐅ;": "float x_1 = x;",
    "float ᐊsizeᐅ = x.size(0);  // the size of ᐊendᐅ": "float size = x.size(0);  // the size of end",
    '#include "h"\nfloat ᐊhᐅ = call("name(Tensor ᐊnameᐅ)");': '#include "h"\nfloat h = call("name(Tensor name)");',
    "static void ᐊmain_rowᐅ_row(Size row);": "static void main_row_row(Size row);",
    "float ᐊβᐅ = 1e-05f * ᐊeᐅ;": "float beta = 1e-05f * e;",
}


@pytest.mark.parametrize("draft", CASES)
def test_names_in_cpp(draft: str) -> None:
    assert allocate([draft], CPP).spell(draft) == CASES[draft]


def test_all_drafts_of_a_scope_count() -> None:
    names = allocate(["struct ᐊkᐅ_arguments {", "Size k_arguments = ᐊyᐅ;"], CPP)
    assert names.spell("ᐊkᐅ_arguments, ᐊyᐅ") == "k_arguments_1, y"


def test_a_placeholder_inside_a_word_is_refused() -> None:
    with pytest.raises(InternalError, match="main_"):
        allocate(["static void main_ᐊrowᐅ();"], CPP)


PYTHON_CASES = {
    "ᐊsumᐅ = torch.sum(ᐊtorchᐅ)": "sum = torch.sum(torch_1)",
    'raise ValueError(f"{ᐊValueErrorᐅ} {[*ᐊxᐅ.shape]}")': 'raise ValueError(f"{ValueError_1} {[*x.shape]}")',
    '"""The gates."""\nᐊgatesᐅ = ᐊmatchᐅ  # all gates': '"""The gates."""\ngates = match_1  # all gates',
}


@pytest.mark.parametrize("draft", PYTHON_CASES)
def test_names_in_python(draft: str) -> None:
    assert allocate([draft], PYTHON).spell(draft) == PYTHON_CASES[draft]


def test_the_width_of_a_draft_is_that_of_its_text() -> None:
    draft = "Size ᐊxᐅ_sizes = ᐊyᐅ;"
    assert columns(draft) == len(plain(draft)) == len("Size x_sizes = y;")
