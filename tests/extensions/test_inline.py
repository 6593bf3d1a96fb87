from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import opwright
from opwright.errors import BuildFailed, ExtensionUnloadable, SourcesRefused
from opwright.settings import Settings
from tests.extensions.conftest import MODULE, returning, value_of
from tests.keeping_compiler import keeping_compiler
from tests.quick_compiler import OPTIMIZING_NOTHING
from tests.toolchain.conftest import Script

LIGHT = {"no_implicit_headers": True, "is_python_module": False}


def library(settings: Settings, *texts: str, **options: Any) -> str:
    return str(opwright.load_inline("quick", list(texts), settings=settings, **{**LIGHT, **options}))


def test_texts_are_one_source(settings: Settings, compiler: Script) -> None:
    texts = ("int g() { return 7; }", returning("g()"))
    made = library(settings, *texts)

    assert value_of(made) == 7
    assert library(settings, *texts) == made
    assert compiler.calls("main.cpp") == 1


def test_a_changed_text_is_another_library(settings: Settings) -> None:
    assert [value_of(library(settings, returning(value))) for value in (1, 2, 1)] == [1, 2, 1]


def test_a_module_may_be_written_out(settings: Settings) -> None:
    text = f"#define ANSWER 7\n{MODULE}"
    module = opwright.load_inline("quick", text, settings=settings, no_implicit_headers=True)

    assert module.answer() == 7


@pytest.mark.parametrize(
    ("texts", "place"),
    [
        (("int f() { return 1 }",), r"^cpp_sources\[0\]:1: "),
        (("int f();\nint g();", "\n\nint h() { return 1 }"), r"^cpp_sources\[1\]:3: "),
    ],
)
def test_errors_count_the_lines_of_the_texts(texts: tuple[str, ...], place: str, settings: Settings) -> None:
    with pytest.raises(BuildFailed, match=place):
        library(settings, *texts)


@pytest.mark.parametrize("wish", [{"sycl_sources": "x"}, {"extra_sycl_cflags": ["-O2"]}, {"with_sycl": True}])
def test_sycl_is_refused(wish: dict[str, Any], settings: Settings) -> None:
    with pytest.raises(SourcesRefused, match=r"SYCL sources are not built here\nhint: torch\.utils\.cpp_extension"):
        library(settings, returning(1), **wish)


def test_optional_cuda_leaves_the_cpp_part(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)

    assert value_of(library(settings, returning(7), cuda_sources="nonsense", cuda_optional=True)) == 7


# Just enough of pybind11 to count what is bound: f() is the number of functions of the module.
COUNTING = """
struct Module { int count = 0; template <class F> void def(const char*, F, const char*) { ++count; } };
#define PYBIND11_MODULE(name, m) \\
  static void fill(Module& m); \\
  extern "C" int f() { Module m; fill(m); return m.count; } \\
  static void fill(Module& m)
namespace torch { template <class F> F wrap_pybind_function(F f) { return f; } }
void one() {}
void two() {}
"""


@pytest.mark.parametrize("wrapped", [True, False])
@pytest.mark.parametrize(
    ("functions", "count"), [("one", 1), (["one", "two"], 2), ({"one": 'says "1"', "two": "a\\nb"}, 2), ([], 0)]
)
def test_functions_are_bound(functions: Any, count: int, wrapped: bool, settings: Settings) -> None:
    options = {"functions": functions, "with_pytorch_error_handling": wrapped}

    assert value_of(library(settings, COUNTING, **options)) == count


def test_a_function_that_is_not_there_is_named(settings: Settings) -> None:
    with pytest.raises(BuildFailed, match=r"^bindings of functions=:2: .three. was not declared.*, building quick"):
        library(settings, COUNTING, functions=["three"])


FUNCTIONS = """
torch::Tensor twice(torch::Tensor x) { return x * 2; }
int64_t refuse(torch::Tensor x) { TORCH_CHECK_VALUE(x.dim() == 7, "seven dimensions, please"); return 0; }
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A cache in which torch/extension.h is compiled once for this module."""
    return Settings(tmp_path_factory.mktemp("shared") / "cache", notify=False)


def bound(settings: Settings, functions: Any, **options: Any) -> Any:
    return opwright.load_inline(
        "bound", FUNCTIONS, functions=functions, extra_cflags=["-O0"], use_pch=True, settings=settings, **options
    )


@pytest.mark.nightly
def test_functions_are_bound_and_their_errors_are_those_of_torch(shared: Settings) -> None:
    module = bound(shared, {"twice": "doubles", "refuse": 'says "no"'})

    assert torch.equal(module.twice(torch.ones(3)), torch.full((3,), 2.0))
    assert module.twice.__doc__.endswith("doubles\n")
    with pytest.raises(ValueError, match="seven dimensions, please"):
        module.refuse(torch.ones(3))


@pytest.mark.nightly
def test_a_precompiled_header_serves_other_extensions(
    shared: Settings, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bound(shared, ["twice"])
    capfd.readouterr()
    opwright.load_inline("other", "", functions=[], extra_cflags=["-O0"], use_pch=True, verbose=True, settings=shared)
    commands = capfd.readouterr().err.splitlines()

    assert not [command for command in commands if "c++-header" in command]
    assert [command for command in commands if "-include" in command]


@pytest.mark.nightly
def test_a_module_without_bindings_is_refused(shared: Settings) -> None:
    with pytest.raises(ExtensionUnloadable, match="bound was built, but it defines no module"):
        bound(shared, None)


@pytest.mark.nightly
@pytest.mark.parametrize("gil_not_used", [True, False])
def test_bindings_may_say_that_they_need_no_gil(gil_not_used: bool, settings: Settings) -> None:
    settings = replace(settings, compiler=keeping_compiler(OPTIMIZING_NOTHING))
    text = "#include <pybind11/pybind11.h>\nint seven() { return 7; }"
    options = {"gil_not_used": gil_not_used, "with_pytorch_error_handling": False, "no_implicit_headers": True}
    module = opwright.load_inline("quick", text, functions="seven", settings=settings, **options)
    (source,) = settings.cache_directory.rglob("main.cpp")

    assert module.seven() == 7
    assert ("mod_gil_not_used()" in source.read_text()) == gil_not_used
