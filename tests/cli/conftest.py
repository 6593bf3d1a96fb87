import sys

import pytest

from opwright.cli.main import main


@pytest.fixture
def write_file(tmp_path, monkeypatch):
    """Write a file of operators; what importing it does to this process is undone."""
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(text, name="operators.py"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    yield write
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def run(capsys):
    """Run a command line; return the exit code, stdout and stderr."""

    def run_command(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        captured = capsys.readouterr()
        return ended.value.code, captured.out, captured.err

    return run_command
