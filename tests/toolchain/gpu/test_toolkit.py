from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from opwright.errors import ToolkitMissing
from opwright.settings import Settings
from opwright.toolchain.gpu import toolkit as cuda_toolkit
from opwright.toolchain.gpu.toolkit import find_cuda_toolkit
from opwright.toolchain.process import asking
from tests.executables import write_executable
from tests.toolchain.fake_toolkit import fake_toolkit, wrapper


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing of CUDA on it, whose PATH is `bin`."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site-packages")])
    monkeypatch.setattr(cuda_toolkit, "USUAL_PLACE", tmp_path / "usual")
    monkeypatch.setattr("shutil.which", lambda name: next(map(str, (tmp_path / "bin").glob(name)), None))
    return tmp_path


def on_the_path(place: Path) -> Path:
    fake_toolkit(place / "toolkit")
    (place / "bin").mkdir()
    (place / "bin" / "nvcc").symlink_to(place / "toolkit" / "bin" / "nvcc")
    return place / "toolkit"


def behind_a_script(place: Path) -> Path:
    wrapper(place / "bin" / "nvcc", fake_toolkit(place / "toolkit"))
    return place / "toolkit"


def behind_two_scripts(place: Path) -> Path:
    wrapper(place / "bin" / "nvcc", wrapper(place / "other" / "nvcc", fake_toolkit(place / "toolkit")))
    return place / "toolkit"


def from_pypi(place: Path) -> Path:
    root = place / "site-packages" / "nvidia" / "cu13"
    fake_toolkit(root, libraries="lib/libcudart.so.13")
    return root


def at_the_usual_place(place: Path) -> Path:
    fake_toolkit(place / "usual")
    return place / "usual"


def for_another_target(place: Path) -> Path:
    root = on_the_path(place)
    target = root / "targets" / "x86_64-linux"
    target.mkdir(parents=True)
    for folder in ("include", "lib64"):
        (root / folder).rename(target / folder)
    return root


@pytest.mark.parametrize(
    "install", [on_the_path, behind_a_script, behind_two_scripts, from_pypi, at_the_usual_place, for_another_target]
)
def test_a_toolkit_is_found_where_it_lives(
    install: Callable[[Path], Path], elsewhere: Path, settings: Settings
) -> None:
    root = install(elsewhere)
    found = find_cuda_toolkit(settings)

    assert found.root == root
    assert found.version == "13.0"
    assert found.headers.is_relative_to(root)
    assert (found.headers / "cuda_runtime.h").exists()
    assert found.runtime.is_relative_to(root)
    assert found.architectures == ("7.5", "8.0", "9.0", "10.0", "12.0")


def test_cuda_home_wins_over_the_path(elsewhere: Path, settings: Settings) -> None:
    on_the_path(elsewhere)
    fake_toolkit(elsewhere / "chosen", version="12.8")

    assert find_cuda_toolkit(replace(settings, cuda_home=elsewhere / "chosen")).version == "12.8"


def test_cuda_home_without_nvcc_is_not_passed_over(elsewhere: Path, settings: Settings) -> None:
    on_the_path(elsewhere)

    with pytest.raises(ToolkitMissing, match=r"there is no CUDA toolkit: there is no .*nowhere/bin/nvcc\nhint: pip"):
        find_cuda_toolkit(replace(settings, cuda_home=elsewhere / "nowhere"))


def without_headers(place: Path) -> None:
    (on_the_path(place) / "include" / "cuda_runtime.h").unlink()


def without_a_runtime(place: Path) -> None:
    (on_the_path(place) / "lib64" / "libcudart.so").unlink()


def broken(place: Path) -> None:
    write_executable(place / "bin" / "nvcc", "#!/bin/sh\necho 'nvcc fatal: no licence'\nexit 1\n")


def not_nvcc(place: Path) -> None:
    write_executable(place / "bin" / "nvcc", "#!/bin/sh\necho hello\n")


def hanging(place: Path) -> None:
    write_executable(place / "bin" / "nvcc", "#!/bin/sh\nexec sleep 600\n")


def nothing(place: Path) -> None:
    """Install nothing."""


@pytest.mark.parametrize(
    ("install", "reason"),
    [
        (nothing, r"there is no CUDA toolkit: nvcc was not found\nhint: pip install nvidia-cuda-nvcc"),
        (without_headers, r"has no cuda_runtime\.h below .*toolkit\n"),
        (without_a_runtime, r"has no libcudart below .*toolkit\n"),
        (broken, r"nvcc cannot run: nvcc fatal: no licence\n"),
        (not_nvcc, r"nvcc does not say which release it is\n"),
        (hanging, r"nvcc did not answer within 0\.5 s\n"),
    ],
)
def test_what_is_no_toolkit_is_said(
    install: Callable[[Path], None],
    reason: str,
    elsewhere: Path,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asking, "PROBE_TIMEOUT_S", 0.5 if install is hanging else 20.0)
    install(elsewhere)

    with pytest.raises(ToolkitMissing, match=reason):
        find_cuda_toolkit(settings)


def test_nvcc_is_asked_again_only_when_its_file_changes(elsewhere: Path, settings: Settings) -> None:
    log = on_the_path(elsewhere) / "calls"
    first = find_cuda_toolkit(settings)
    calls = log.read_text()

    assert find_cuda_toolkit(settings) == first
    assert log.read_text() == calls
    fake_toolkit(elsewhere / "toolkit", version="13.1.2")
    assert find_cuda_toolkit(settings).version == "13.1"
