"""Coverage of types made elsewhere: its pages can be made, and every fault on them has a reason."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
import torch

from opwright.tensors.covering.pages import page_of, unexplained
from tests.tensors.public_pages import FOLDER
from tests.tensors.public_types import PUBLIC

_PACKAGES = {"torch", "torchvision", "torchao"}


def test_every_type_has_a_page_with_its_title() -> None:
    for name, public in PUBLIC.items():
        text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
        assert text.startswith(f"# Coverage of {public.package}'s {public.name}\n")
        assert "torch 2." in text
    assert {path.stem for path in FOLDER.glob("*.md")} == {*PUBLIC, "README"}
    assert {public.package for public in PUBLIC.values()} == _PACKAGES


def test_faults_of_a_public_type_have_reasons() -> None:
    public = PUBLIC["masked_tensor"]
    report = public.report(["argmax", "sub", "amax"])
    assert {entry.name for entry in report.wrong} == {"torch.argmax", "torch.Tensor.argmax"}
    assert "torch.add" not in {entry.name for entry in report.entries}
    assert report.signatures
    assert report.disagreeing
    assert unexplained(report.to_dict(), public.why) == []
    assert len(unexplained(report.to_dict(), {})) == len(report.wrong) + len(report.signatures) + len(
        report.disagreeing
    )
    page = public.page(report)
    assert f"torch {torch.__version__}." in page
    assert "| Indices are masked like values, in the dtype of these. |" in page


def test_alike_remarks_of_a_page_stand_together() -> None:
    def entry(name: str, how: str, detail: str) -> dict[str, str]:
        return {"name": name, "how": how, "detail": detail, "disagrees": "", "signature": ""}

    entries = [
        entry("torch.ne", "fails", "aten.ne.Tensor: need to convert, at 0x7f00"),
        entry("torch.dist", "fails", "aten.dist.default: need to convert, at 0x7fff"),
        entry("torch.exp", "wrong", "values differ by 1.0e-02"),
        entry("torch.log", "wrong", "values differ by 2.0e-02"),
        entry("torch.sin", "wrong", "a [shape] | a <b>"),
    ]
    page = page_of({"counts": {"fails": 2}, "entries": entries}, "T", "About.", {"values": "They are rough."})
    assert "| aten.…: need to convert, | `torch.ne`, `torch.dist` |" in page
    assert "| values differ by 1.0e-02 (and alike) | `torch.exp`, `torch.log` | They are rough. |" in page
    assert "| a \\[shape] \\| a &lt;b> | `torch.sin` |  |" in page


@pytest.mark.nightly
@pytest.mark.parametrize("name", PUBLIC)
def test_the_page_of_a_public_type_can_be_made(name: str) -> None:
    public = PUBLIC[name]
    if find_spec(public.package) is None:
        pytest.skip(f"{public.package} is not installed; the extra is wild")
    report = public.report()
    assert unexplained(report.to_dict(), public.why) == []
    assert len(report.handled) + len(report.fallback) > 100
    assert public.page(report).startswith("# Coverage of")
