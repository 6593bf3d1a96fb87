"""Headers that stand beside ejected sources: those that are needed, and no others."""

from pathlib import Path

import pytest

from opwright.projects.headers import headers_for, settled, vendored
from opwright.toolchain.recipe import INCLUDE_DIRECTORY


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("for_each_row(extents, operands, 5, row); allocate(float32)", {"rows.h"}),
        ("const float y = sigmoid(x);", {"vmath_exponential.h"}),
        ("const float y = asinh(x);", {"vmath_hyperbolic.h"}),
        ("const auto y = detail::exact_product(x[j], x[j]);", {"vmath_parts.h"}),
        ("const float y = to_float(x[j]);", {"half.h"}),
        ("const Complex<float> y = exp(z);", {"complex.h"}),
        ("reduce_rows(extents)", {"reduce_rows.h"}),
        ("int x = 5;", set()),
    ],
)
def test_headers_are_found_by_what_they_define(said, names):
    assert names <= set(headers_for(said))
    assert "kernel.h" not in headers_for(said)


def test_a_header_that_another_includes_is_not_named():
    assert headers_for("sigmoid(x) from_bits(y)") == ("vmath_exponential.h",)


def test_what_is_included_comes_along_without_the_pool():
    files = vendored(("rows.h",))
    names = {path.rpartition("/")[2] for path in files}
    assert names == {
        *(
            "LICENSE",
            "rows.h",
            "once.h",
            "moves.h",
            "operands.h",
            "packed_rows.h",
            "transpose.h",
            "parallel.h",
            "forks.h",
            "gathers.h",
            "stream.h",
            "tensor.h",
            "device.h",
            "shim.h",
        )
    }
    assert not any("pool" in text.lower() for path, text in files.items() if path.endswith("tensor.h"))
    assert all(text.startswith("// From opwright ") for path, text in files.items() if path.endswith(".h"))


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("#ifdef YES\na\n#else\nb\n#endif\n", "a\n"),
        ("#ifndef YES\na\n#else\nb\n#endif\n", "b\n"),
        ("#if defined(NO) && !defined(OTHER)\na\n#endif\nb\n", "b\n"),
        ("#ifdef NO\na\n#elif defined(YES)\nb\n#else\nc\n#endif\n", "b\n"),
        ("#ifdef YES\na\n#elif defined(YES)\nb\n#else\nc\n#endif\n", "a\n"),
        ("#ifdef NO\n#ifdef OTHER\na\n#else\nb\n#endif\n#else\nc\n#endif\n", "c\n"),
        ("#ifdef OTHER\na\n#ifdef NO\nb\n#endif\n#else\nc\n#endif\n", "#ifdef OTHER\na\n#else\nc\n#endif\n"),
    ],
)
def test_what_is_known_is_not_asked(header, expected):
    assert settled(header, {"YES": True, "NO": False}) == expected


def test_the_licence_is_that_of_the_project():
    root = Path(__file__).parents[2] / "LICENSE"
    assert (INCLUDE_DIRECTORY / "opwright" / "LICENSE").read_text() == root.read_text()
