"""Progress goes through logging: a warning at a terminal, information elsewhere, nothing where nobody asked."""

import logging

import pytest

from opwright.toolchain.process.notice import Notice


@pytest.mark.parametrize(("at_terminal", "level"), [(True, logging.WARNING), (False, logging.INFO)])
@pytest.mark.parametrize("wanted", [True, False])
def test_what_takes_long_is_logged_once(at_terminal, level, wanted, monkeypatch, caplog, capsys):
    monkeypatch.setattr("opwright.toolchain.process.notice._QUIET_S", 0.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: at_terminal, raising=False)
    with caplog.at_level(logging.INFO, logger="opwright"):
        notice = Notice(wanted)
        notice.tick("building f")
        notice.tick("building f")
    assert caplog.record_tuples == ([("opwright", level, "building f …")] if wanted else [])
    assert capsys.readouterr().err == ""


def test_what_is_quick_is_not(caplog):
    with caplog.at_level(logging.INFO, logger="opwright"):
        Notice(wanted=True).tick("building f")
    assert not caplog.records
