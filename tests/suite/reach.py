"""`--since REVISION`: run only the tests that changes since then can affect.

A test file reaches the modules that it imports, directly or indirectly; the modules and files that strings in these
name, such as a program for another process; and the conftest.py of its folders. A string that names a folder, such as
"examples", reaches everything in it; C++ headers are reached by such a string.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from tests.architecture.source_tree import Module, read_module, read_package

PACKAGE, TESTS = "opwright", "tests"
EVERYTHING = frozenset({"pyproject.toml", "constraints.txt", "Makefile"})
ALWAYS = ("tests/architecture/", "tests/test_frame.py", "tests/suite/")  # these tests read all files of the repository

_MODULE = re.compile(rf"\b(?:{PACKAGE}|{TESTS})(?:\.\w+)+")
_ROOT = re.compile(rf"\bimport {PACKAGE}\b(?!\.)|\bfrom {PACKAGE} import|^{PACKAGE}$", re.MULTILINE)


class Reach:
    """The files that each test file of a repository reaches.

    Args:
        repository: Where it is.
        files: All files of it, relative to it.
    """

    def __init__(self, repository: Path, files: Iterable[str]) -> None:
        self._modules = read_package(repository / "src" / PACKAGE, repository / TESTS)
        self._file_of = {name: module.path.relative_to(repository).as_posix() for name, module in self._modules.items()}
        self._exported = _exported(self._modules[PACKAGE])
        self._data = _by_words(set(files) - set(self._file_of.values()))
        self._sources = _by_words(self._file_of.values(), folders=False)
        known = frozenset(self._modules)
        scripts = {
            file: read_module(file, repository / file, known)
            for file in set(files) - set(self._file_of.values())
            if file.endswith(".py") and (repository / file).is_file()
        }
        read = {**{self._file_of[name]: module for name, module in self._modules.items()}, **scripts}
        self._edges = {file: set(self._edges_of(module)) for file, module in read.items()}
        self._readers: dict[str, set[str]] = defaultdict(set)
        for file, edges in self._edges.items():
            for other in edges:
                self._readers[other].add(file)

    def tests(self, changed: Iterable[str]) -> set[str]:
        """The test files that reach one of the given files, which are relative to the repository."""
        changed, all_tests = set(changed), {file for file in self._edges if _is_test(file)}
        gone = {file for file in changed if file.endswith(".py") and file not in self._edges}
        own = {file: [other for other in edges if other.startswith(TESTS)] for file, edges in self._edges.items()}
        conftest = _closure([f"{TESTS}/conftest.py"], own) if all_tests else set()
        if changed & (EVERYTHING | conftest) or gone:
            return all_tests
        return self.reaching(changed) | {test for test in all_tests if test.startswith(ALWAYS)}

    def reaching(self, files: Set[str]) -> set[str]:
        """The test files that reach one of the given files, without those that always run."""
        found = _closure(files, self._readers)
        return {file for file in self._edges if _is_test(file) and not found.isdisjoint(self._starts(file))}

    def _starts(self, test: str) -> list[str]:
        """A test file, and the conftest.py of its folders."""
        folders = [str(folder) for folder in PurePosixPath(test).parents if str(folder) not in (".", TESTS)]
        return [test, *(f"{folder}/conftest.py" for folder in folders)]

    def _edges_of(self, module: Module) -> Iterator[str]:
        if module.name == PACKAGE:
            return  # who imports it needs what it takes from there
        in_package = module.name.startswith(f"{PACKAGE}.")
        nodes = list(ast.walk(module.tree))
        names = {imported.target for imported in module.imports} - {PACKAGE} | _members_of_the_root(nodes)
        for text in _strings(nodes):
            names.update(_MODULE.findall(text))
            if not in_package and _ROOT.search(text):
                names.add(f"{PACKAGE}.__main__")
            for word in text.split("/"):
                yield from (file for file in self._data.get(word, ()) if not in_package or file.startswith("src/"))
                yield from self._sources.get(word, ())
        for name in names:
            yield from self._files_run_by(name)

    def _files_run_by(self, name: str) -> Iterator[str]:
        """The files of a module and its packages; of a longer name, those of its longest prefix that is a module.

        A member of the root package reaches the module that defines it; the root as a whole reaches all of them.
        """
        root, _, member = name.partition(".")
        if root == PACKAGE and (not member or name not in self._file_of):
            homes = [self._exported.get(member.partition(".")[0])] if member else self._exported.values()
            yield from (self._file_of[home] for home in homes if home in self._file_of)
            yield self._file_of[PACKAGE]
        while "." in name:
            if name in self._file_of:
                yield self._file_of[name]
            name = name.rpartition(".")[0]


def _closure(starts: Iterable[str], edges: Mapping[str, Iterable[str]]) -> set[str]:
    """What edges lead to, with the starts."""
    found: set[str] = set()
    waiting = [*starts]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += edges.get(file, ())
    return found


def _exported(root: Module) -> dict[str, str]:
    """The members of a package, and the modules that it imports them from."""
    statements = (node for node in ast.walk(root.tree) if isinstance(node, ast.ImportFrom))
    return {
        alias.asname or alias.name: statement.module
        for statement in statements
        if statement.module and statement.level == 0
        for alias in statement.names
    }


def _members_of_the_root(nodes: list[ast.AST]) -> set[str]:
    """The members of the package that a module uses, as in `opwright.member`; the whole package if used otherwise."""
    imported = {
        f"{PACKAGE}.{alias.name}"
        for node in nodes
        if isinstance(node, ast.ImportFrom) and (node.level, node.module) == (0, PACKAGE)
        for alias in node.names
    }
    used = [f"{PACKAGE}.{node.attr}" for node in nodes if isinstance(node, ast.Attribute) and _is_root(node.value)]
    is_used_otherwise = sum(map(_is_root, nodes)) > len(used)
    return {*imported, *used, *([PACKAGE] if is_used_otherwise else [])}


def _is_root(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == PACKAGE


@dataclass(frozen=True, slots=True)
class Since:
    """A plugin that deselects the test files that no change can affect."""

    repository: Path
    chosen: frozenset[str]

    @classmethod
    def of(cls, config: pytest.Config) -> Since:
        """Ask git what has changed; the workers get the resulting list."""
        if workerinput := getattr(config, "workerinput", None):
            return cls(config.rootpath, frozenset(workerinput["chosen"]))
        changed = changed_since(config.rootpath, config.getoption("--since"))
        return cls(config.rootpath, frozenset(Reach(config.rootpath, _git(config.rootpath, *_FILES)).tests(changed)))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker what to run."""
        node.workerinput["chosen"] = sorted(self.chosen)

    def pytest_report_header(self) -> str:
        """Report the number of test files to run."""
        return f"what has changed can reach {len(self.chosen)} test files"

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave out the others."""
        if collection_path.suffix != ".py" or collection_path.name == "conftest.py":
            return None
        return None if collection_path.relative_to(self.repository).as_posix() in self.chosen else True

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """An empty selection is not an error."""
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK


_FILES = ("ls-files", "--cached", "--others", "--exclude-standard")


def changed_since(repository: Path, revision: str) -> set[str]:
    """The files, including new ones, that differ from the merge base with a revision."""
    (parted,) = _git(repository, "merge-base", revision, "HEAD")
    tracked = _git(repository, "diff", "--name-only", "--no-renames", parted)
    return {*tracked, *_git(repository, "ls-files", "--others", "--exclude-standard")}


def _git(repository: Path, *arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=repository, capture_output=True, text=True, check=False)
    if done.returncode:
        raise pytest.UsageError(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.splitlines()


def _by_words(files: Iterable[str], folders: bool = True) -> Mapping[str, set[str]]:
    """Files by their names, and by the names of their folders."""
    found = defaultdict(set)
    for file in files:
        path = PurePosixPath(file)
        for word in [path.name, *(path.parent.parts if folders else ())]:
            if word not in ("src", PACKAGE, TESTS):
                found[word].add(file)
    return found


def _strings(nodes: list[ast.AST]) -> Iterator[str]:
    """The strings in a module that are not docstrings."""
    documentation = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


def _is_test(file: str) -> bool:
    path = PurePosixPath(file)
    return path.parts[0] == TESTS and path.name.startswith("test_")
