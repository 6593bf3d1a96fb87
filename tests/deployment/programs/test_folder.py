"""A deployment is written whole or not at all, and never over files of others."""

from pathlib import Path

import pytest

from opwright.deployment.deploy import deploy
from opwright.deployment.programs.folder import refuse_taken, write_manifest, written_whole
from opwright.errors import DeploymentUnsupported, DirectoryTaken, ToolMissing


def _write(at, text):
    with written_whole(at) as folder:
        (folder / "text").write_text(text)
        write_manifest(folder, {"name": text})


def test_a_deployment_replaces_an_earlier_one(tmp_path):
    at = tmp_path / "new" / "out"
    for text in ("first", "second"):
        _write(at, text)
        assert (at / "text").read_text() == text
    assert [each.name for each in at.parent.iterdir()] == ["out"]


def test_nothing_stays_of_one_that_fails(tmp_path):
    at = tmp_path / "out"
    _write(at, "first")
    with pytest.raises(ZeroDivisionError), written_whole(at) as folder:
        (folder / "text").write_text(str(1 // 0))
    assert (at / "text").read_text() == "first"
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_files_of_others_stay(tmp_path):
    (tmp_path / "thesis.tex").write_text("years")
    with pytest.raises(DirectoryTaken, match="is not empty, and no deployment"):
        refuse_taken(tmp_path)
    with pytest.raises(DirectoryTaken, match="is a file"):
        refuse_taken(tmp_path / "thesis.tex")


@pytest.mark.parametrize(
    ("how", "kind", "sentence"),
    [
        ({"to": "punched-cards"}, DeploymentUnsupported, "there is no target 'punched-cards'"),
        ({"to": "executorch"}, ToolMissing, "executorch is not installed"),
        ({"to": "executorch", "direct": True}, DeploymentUnsupported, "direct= is not for 'executorch'"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is(tmp_path, how, kind, sentence):
    with pytest.raises(kind, match=sentence) as refused:
        deploy(lambda x: x, (), at=tmp_path / "out", **how)
    assert refused.value.hint
    assert not list(tmp_path.iterdir())


def test_a_relative_folder_is_given_as_an_absolute_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with written_whole(Path("out")) as folder:
        assert folder.is_absolute()  # a linker that runs elsewhere finds it
        (folder / "text").write_text("here")
    assert (tmp_path / "out" / "text").read_text() == "here"
