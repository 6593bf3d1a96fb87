"""`opwright report`: the file that it writes."""

import json

TEXT = """
import torch, opwright
@opwright.operator(samples=opwright.shapes("S", S=8), name="cli_report::{name}")
def {name}(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) * x
"""
QUICK = ("--no-check", "--no-audit", "--no-bench")


def test_one_operator_one_page(write_file, run, tmp_path) -> None:
    code, out, _ = run("report", write_file(TEXT.format(name="shown")), "--to", str(tmp_path / "page.html"), *QUICK)
    assert (code, out) == (0, f"cli_report::shown: {tmp_path / 'page.html'}\n")
    assert "cli_report::shown" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_each_of_several_operators_has_a_page_of_its_name(write_file, run, tmp_path) -> None:
    file = write_file(TEXT.format(name="first") + TEXT.format(name="second"))
    code, out, _ = run("report", file, "--to", str(tmp_path / "page.html"), "--json", *QUICK)
    assert code == 0
    assert [facts["name"] for facts in json.loads(out)] == ["cli_report::first", "cli_report::second"]
    assert {each.name for each in tmp_path.glob("*.html")} == {"page-first.html", "page-second.html"}
