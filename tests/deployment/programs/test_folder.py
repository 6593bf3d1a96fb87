"""A deployment is written whole or not at all, and never over files of others."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from opwright.deployment.deploying import deploy
from opwright.deployment.programs.folder import refuse_taken, write_manifest, written_whole
from opwright.errors import DeploymentUnsupported, DirectoryTaken, ToolMissing
from tests.suite.nights import mostly_at_night


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


_WRITE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
from pathlib import Path
from opwright.deployment.programs.folder import MANIFEST, written_whole
with written_whole(Path(sys.argv[1])) as folder:
    (folder / "text").write_text("half")
    print("writing", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("how", mostly_at_night([signal.SIGINT, signal.SIGKILL], by_day=1))
def test_an_end_in_the_middle_leaves_the_earlier_one(tmp_path, how):
    at = tmp_path / "out"
    _write(at, "first")
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITE, str(at)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert writer.stdout.readline() == b"writing\n"
    _write(at, "second")  # what is being written is left alone
    assert len(list(tmp_path.iterdir())) == 2
    writer.send_signal(how)
    assert writer.wait(60) != 0
    writer.stdin.close()
    writer.stdout.close()
    assert (at / "text").read_text() == "second"
    assert len(list(tmp_path.iterdir())) == (2 if how == signal.SIGKILL else 1)
    (tmp_path / ".out-20240101").mkdir()  # of somebody else
    _write(at, "third")
    assert (at / "text").read_text() == "third"
    assert {each.name for each in tmp_path.iterdir()} == {"out", ".out-20240101"}


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_folder_is_replaced_in_one_step_where_the_system_can(tmp_path, monkeypatch, exchanges):
    """Somebody who looks meanwhile sees the earlier deployment or the new one."""
    at = tmp_path / "out"
    _write(at, "first")
    if not exchanges:
        monkeypatch.setattr("opwright.deployment.programs.folder._exchanged", lambda one, other: False)
    moved = []
    rename = Path.rename
    monkeypatch.setattr(Path, "rename", lambda path, to: (moved.append(path), rename(path, to))[1])
    _write(at, "second")
    assert (at / "text").read_text() == "second"
    assert [each.name for each in tmp_path.iterdir()] == ["out"]
    assert bool(moved) is not exchanges


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
