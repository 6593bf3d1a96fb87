"""Which tests a change can reach: on a planted repository, and on this one."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.suite.reach import Reach, Since, changed_since

REPOSITORY = Path(__file__).parents[2]
FILES = {
    "pyproject.toml": "",
    "README.md": "",
    "examples/cell.py": "import opwright\nopwright.operator",
    "src/opwright/__init__.py": "from opwright.api.decorator import operator\nfrom opwright.nn import module",
    "src/opwright/__main__.py": "import opwright.cli.main",
    "src/opwright/api/decorator.py": "import opwright.ir.program",
    "src/opwright/cli/main.py": "def run():\n    import opwright.api.decorator",
    "src/opwright/include/opwright/kernel.h": "",
    "src/opwright/ir/__init__.py": "",
    "src/opwright/ir/program.py": "",
    "src/opwright/ir/words.txt": "",
    "src/opwright/ir/words.py": "FILE = 'words.txt'",
    "src/opwright/nn/__init__.py": "module = 1",
    "src/opwright/toolchain/build.py": '"""About opwright.nn."""\nINCLUDE = "include"',
    "tests/conftest.py": "import tests.quick, opwright.nn",
    "tests/quick.py": "",
    "tests/binding/conftest.py": "import opwright.toolchain.build",
    "tests/binding/test_a.py": "",
    "tests/ir/test_program.py": "from opwright.ir.program import Program",
    "tests/ir/test_words.py": "from opwright.ir import words",
    "tests/operator/helper.py": "import opwright.api.decorator as d",
    "tests/operator/test_helped.py": "from tests.operator.helper import d",
    "tests/operator/test_member.py": "import opwright\nopwright.operator",
    "tests/operator/test_other_member.py": "from opwright import module",
    "tests/operator/test_whole.py": "import opwright\nvars(opwright)",
    "tests/test_command.py": "run('-m', 'opwright')",
    "tests/test_examples.py": "FOLDER = 'examples'",
    "tests/test_patched.py": "patch('opwright.toolchain.build.INCLUDE')",
    "tests/test_program_text.py": "PROGRAM = 'from opwright.nn import module'",
    "tests/test_reads.py": "HERE / 'operator/helper.py'",
}
ALL = {file for file in FILES if "/test_" in file}
OF_ROOT = {f"tests/operator/test_{name}.py" for name in ("helped", "member", "whole")}


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ("README.md", set()),
        ("pyproject.toml", ALL),
        ("tests/conftest.py", ALL),
        ("tests/quick.py", ALL),
        ("src/opwright/ir/gone.py", ALL),
        ("src/opwright/ir/words.py", {"tests/ir/test_words.py"}),
        ("src/opwright/ir/words.txt", {"tests/ir/test_words.py"}),
        ("tests/ir/test_words.py", {"tests/ir/test_words.py"}),
        (
            "src/opwright/ir/program.py",
            {
                *OF_ROOT,
                "tests/ir/test_program.py",
                "tests/test_command.py",
                "tests/test_examples.py",
                "tests/test_reads.py",
            },
        ),
        (
            "src/opwright/api/decorator.py",
            {*OF_ROOT, "tests/test_command.py", "tests/test_examples.py", "tests/test_reads.py"},
        ),
        ("tests/operator/helper.py", {"tests/operator/test_helped.py", "tests/test_reads.py"}),
        (
            "src/opwright/nn/__init__.py",
            {"tests/operator/test_other_member.py", "tests/operator/test_whole.py", "tests/test_program_text.py"},
        ),
        ("src/opwright/toolchain/build.py", {"tests/binding/test_a.py", "tests/test_patched.py"}),
        ("src/opwright/include/opwright/kernel.h", {"tests/binding/test_a.py", "tests/test_patched.py"}),
        ("src/opwright/cli/main.py", {"tests/test_command.py"}),
        ("examples/cell.py", {"tests/test_examples.py"}),
    ],
)
def test_a_change_reaches(changed: str, found: set[str], planted: Path) -> None:
    assert Reach(planted, FILES).tests([changed]) == found


def test_what_has_changed_is_committed_or_not_or_new(planted: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        subprocess.run(["git", *identity, *arguments], cwd=planted, check=True, capture_output=True)

    git("init", "--initial-branch=main")
    git("add", "--all")
    git("commit", "--message", "before")
    git("checkout", "-b", "branch")
    (planted / "README.md").write_text("committed")
    git("commit", "--all", "--message", "after")
    (planted / "pyproject.toml").write_text("not committed")
    (planted / "new.py").write_text("")
    git("checkout", "main")
    (planted / "examples/cell.py").write_text("on the other branch, afterwards")
    git("commit", "--message", "main goes on", "examples/cell.py")
    git("checkout", "branch")
    assert changed_since(planted, "main") == {"README.md", "pyproject.toml", "new.py"}
    with pytest.raises(pytest.UsageError, match="no-such-branch"):
        changed_since(planted, "no-such-branch")


def test_others_are_left_out(planted: Path) -> None:
    chosen = Since(planted, frozenset({"tests/test_reads.py"}))
    left_out = {file for file in FILES if chosen.pytest_ignore_collect(planted / file)}
    assert left_out & ALL == ALL - {"tests/test_reads.py"}
    assert "tests/conftest.py" not in left_out


@pytest.fixture(scope="module")
def here() -> Reach:
    files: Callable[[str], list[Path]] = lambda pattern: list(REPOSITORY.glob(pattern))  # noqa: E731
    found = [*files("src/opwright/**/*"), *files("tests/**/*"), *files("examples/**/*"), *files("benchmarks/*")]
    return Reach(REPOSITORY, [path.relative_to(REPOSITORY).as_posix() for path in found if path.is_file()])


@pytest.mark.nightly
def test_tests_reach_what_they_are_named_after(here: Reach) -> None:
    components = {path.name for path in (REPOSITORY / "src/opwright").iterdir() if path.is_dir()}
    tests = here.tests(["pyproject.toml"])
    named = {name: {test for test in tests if test.split("/")[1] == name} for name in components}
    assert sum(map(len, named.values())) > 100
    files = [path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "src/opwright").rglob("*")]
    for name, own in named.items():
        assert own <= here.reaching({file for file in files if file.startswith(f"src/opwright/{name}/")})


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("changed", "test", "reached"),
    [
        ("src/opwright/ir/program.py", "tests/operator/test_calls.py", True),
        ("src/opwright/include/opwright/vmath.h", "tests/operator/test_calls.py", True),
        ("src/opwright/native/tape.cpp", "tests/operator/test_calls.py", True),
        ("src/opwright/cli/main.py", "tests/operator/test_calls.py", False),
        ("src/opwright/tracing/trace.py", "tests/ir/test_verifier.py", False),
        ("tests/lowering/batch.py", "tests/lowering/pointwise/test_table.py", True),
        ("examples/lltm.py", "tests/auditing/test_our_operators.py", True),
    ],
)
def test_here(changed: str, test: str, reached: bool, here: Reach) -> None:
    assert (test in here.tests([changed])) is reached
