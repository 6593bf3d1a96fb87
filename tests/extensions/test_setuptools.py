"""Extensions that setuptools installs; `setup.py` is run in this process."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from setuptools import Distribution, Extension
from setuptools.errors import CompileError

from opwright.extensions.setuptools import BuildExtension, CppExtension, CUDAExtension
from tests.extensions.conftest import MODULE, WriteSource, returning, value_of
from tests.toolchain.conftest import Script

Build = Callable[..., list[Path]]


@pytest.fixture
def build(tmp_path: Path, compiler: Script, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Run `setup.py build_ext` in the project's folder and return the files that it makes."""
    monkeypatch.setenv("CXX", str(compiler.path))
    monkeypatch.setenv("OPWRIGHT_CACHE", str(tmp_path / "cache"))

    def run(*extensions: Extension, command: type[BuildExtension] = BuildExtension, **options: Any) -> list[Path]:
        monkeypatch.chdir(tmp_path / "project")
        attributes = {"name": "made", "ext_modules": list(extensions), "cmdclass": {"build_ext": command}}
        distribution = Distribution(attributes)
        order = distribution.get_command_obj("build_ext")
        for name, value in {"build_lib": str(tmp_path / "out"), **options}.items():
            setattr(order, name, value)
        distribution.run_command("build_ext")
        return sorted(path for path in (tmp_path / "out").rglob("*") if path.is_file())

    return run


def imported(path: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_module_is_built_where_setuptools_wants_it(build: Build, write: WriteSource) -> None:
    write("src/quick.cpp", f"#define ANSWER 7\n{MODULE}")
    (made,) = build(CppExtension("package.quick", ["src/quick.cpp"]))

    assert made.parent.name == "package"
    assert made.name.startswith("quick.cpython-")
    assert imported(made, "quick").answer() == 7


def test_a_second_build_compiles_what_has_changed(build: Build, write: WriteSource, compiler: Script) -> None:
    for name in "ab":
        write(f"{name}.cpp", returning(f"{name.upper()}", name, f'#include "{name}.h"'))
        write(f"{name}.h", f"#define {name.upper()} 1\n")
    (made,) = build(CppExtension("both", ["a.cpp", "b.cpp"]))
    write("b.h", "#define B 2\n")
    build(CppExtension("both", ["a.cpp", "b.cpp"]))

    assert (value_of(made, "a"), value_of(made, "b")) == (1, 2)
    assert (compiler.calls("a.cpp"), compiler.calls("b.cpp")) == (1, 2)


def test_what_setuptools_can_be_told_arrives(build: Build, write: WriteSource, tmp_path: Path) -> None:
    write("a.cpp", returning("ANSWER + MORE", before='#include "more.h"\n#ifdef GONE\n#error\n#endif'))
    write("include/more.h", "#define MORE 2\n")
    extension = CppExtension(
        "told",
        ["a.cpp"],
        include_dirs=["include"],
        define_macros=[("ANSWER", "40"), ("FLAG", None)],
        undef_macros=["GONE"],
        extra_compile_args={"cxx": ["-DGONE=1", "-UGONE"]},
        libraries=["m"],
        extra_link_args=["-Wl,-soname,told.so"],
    )
    (made,) = build(extension)

    assert value_of(made) == 42


def test_the_version_of_python_may_be_left_out(build: Build, write: WriteSource) -> None:
    write("a.cpp", returning(7))
    (made,) = build(
        CppExtension("package.plain", ["a.cpp"]),
        command=BuildExtension.with_options(no_python_abi_suffix=True, use_ninja=False),
    )

    assert made.name == "plain.so"


def test_extensions_of_torch_are_built_too(build: Build, write: WriteSource) -> None:
    from torch.utils.cpp_extension import CppExtension as TorchsOwn

    write("a.cpp", returning("STANDARD", before="#define STANDARD (int)(__cplusplus / 100)"))
    (made,) = build(TorchsOwn("theirs", ["a.cpp"]))

    assert value_of(made) == (2017 if torch.__version__ < (2, 12) else 2020)  # as that PyTorch has it


def test_other_extensions_are_left_to_setuptools(build: Build, write: WriteSource, compiler: Script) -> None:
    write("a.c", "int f(void) { return 7; }\n")
    (made,) = build(Extension("plain", ["a.c"]))

    assert value_of(made) == 7


def test_optional_cuda_leaves_the_cpp_part(build: Build, write: WriteSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    write("a.cpp", returning(7))
    write("b.cu", "nonsense")
    (made,) = build(CUDAExtension("either", ["a.cpp", "b.cu"], cuda_optional=True))

    assert value_of(made) == 7


@pytest.mark.parametrize(
    ("extension", "words"),
    [
        (lambda: CppExtension("twins", ["x.cpp", "x.cu"]), r"x\.cpp and x\.cu differ only in their suffix"),
        (lambda: CUDAExtension("needs", ["x.cu"]), r"this PyTorch, .*, is built without CUDA"),
        (lambda: CppExtension("bad", ["bad.cpp"]), r"bad\.cpp:2: .*, building bad\nhint: "),
    ],
)
def test_a_mistake_ends_the_build_with_one_message(
    extension: Callable[[], Extension],
    words: str,
    build: Build,
    write: WriteSource,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    write("x.cpp", "")
    write("x.cu", "")
    write("bad.cpp", "\nnonsense;")

    with pytest.raises(CompileError, match=words):
        build(extension())


def test_device_link_is_asked_for_as_in_torch() -> None:
    extension = CUDAExtension("linked", ["a.cu"], dlink_libraries=["nvshmem"], library_dirs=["/lib/there"])

    assert extension.device_link_flags == ("-L/lib/there", "-lnvshmem")
    assert CUDAExtension("plain", ["a.cu"], dlink=True).device_link_flags == ()
    assert CUDAExtension("none", ["a.cu"]).device_link_flags is None


@pytest.mark.nightly
def test_a_project_becomes_a_wheel(write: WriteSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("made/__init__.py", "")
    write("quick.cpp", f"#define ANSWER 7\n{MODULE}")
    write("pyproject.toml", '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n')
    project = write(
        "setup.py",
        "from setuptools import setup\n"
        "from opwright.extensions.setuptools import BuildExtension, CppExtension\n"
        'setup(name="made", version="1", packages=["made"], cmdclass={"build_ext": BuildExtension},\n'
        '      ext_modules=[CppExtension("made.quick", ["quick.cpp"])])\n',
    ).parent
    monkeypatch.setenv("OPWRIGHT_CACHE", str(tmp_path / "cache"))
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), "."]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("made-1-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    (module,) = (tmp_path / "installed" / "made").glob("quick.*.so")

    assert imported(module, "quick").answer() == 7
