from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from opwright.toolchain import recipe
from opwright.toolchain.compiler import Compiler
from opwright.toolchain.recipe import header_digests, kernel_recipe, torch_stub_recipe
from opwright.toolchain.source import Source


@dataclass(frozen=True, slots=True)
class Circumstances:
    """All that may differ between two builds."""

    source: Source
    compiler: Compiler
    header: str
    torch: str
    processor: str


START = Circumstances(
    source=Source("kernel", "int f();"),
    compiler=Compiler(Path("/usr/bin/g++"), "g++ 12", "gcc", ("-O3",)),
    header="inline int g();",
    torch="2.13.0",
    processor="x86_64-1",
)
CHANGES = {
    "text": replace(START, source=Source("kernel", "int g();")),
    "name": replace(START, source=Source("other", "int f();")),
    "flags": replace(START, compiler=replace(START.compiler, flags=("-O2",))),
    "compiler": replace(START, compiler=replace(START.compiler, path=Path("/usr/local/bin/g++"))),
    "leading words": replace(START, compiler=replace(START.compiler, leading_words=("-m64",))),
    "version": replace(START, compiler=replace(START.compiler, version="g++ 13")),
    "header": replace(START, header="inline long g();"),
    "torch": replace(START, torch="2.15.0"),
    "processor": replace(START, processor="x86_64-2"),
}


@pytest.fixture
def key_under(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Circumstances], str]:
    def key(circumstances: Circumstances) -> str:
        (tmp_path / "opwright").mkdir(exist_ok=True)
        (tmp_path / "opwright" / "a.h").write_text(circumstances.header)
        monkeypatch.setattr(recipe.torch, "__version__", circumstances.torch)
        monkeypatch.setattr(recipe, "fingerprint", lambda: circumstances.processor)
        return kernel_recipe(circumstances.source, circumstances.compiler, header_digests(tmp_path)).key

    return key


@pytest.mark.parametrize("changed", CHANGES.values(), ids=CHANGES)
def test_a_change_gives_another_key(changed: Circumstances, key_under: Callable[[Circumstances], str]) -> None:
    assert key_under(changed) != key_under(START)


def test_going_back_gives_the_first_key(key_under: Callable[[Circumstances], str]) -> None:
    first = key_under(START)
    key_under(CHANGES["header"])

    assert key_under(START) == first


def test_a_new_header_is_seen(tmp_path: Path) -> None:
    (tmp_path / "opwright").mkdir()
    before = header_digests(tmp_path)
    (tmp_path / "opwright" / "b.h").write_text("")
    (tmp_path / "opwright" / "cuda").mkdir()
    (tmp_path / "opwright" / "cuda" / "a.h").write_text("")

    assert before == {}
    assert list(header_digests(tmp_path)) == ["b.h", "cuda/a.h"]


def test_the_stub_does_not_depend_on_kernel_flags() -> None:
    assert torch_stub_recipe(START.compiler).key == torch_stub_recipe(CHANGES["flags"].compiler).key
