"""Compilers that keep what they made, for tests of something else: they compile again if a file they read changed.

    keeping_compiler(OPTIMIZING_NOTHING)      as quick_compiler, for a test with a cache directory of its own
    keeping_compiler("", "g++")               for programs that tests compile themselves

As ccache in its direct mode: a digest of the command line and the sources leads to what was made, what was printed, and
the digests of all files that were included; libraries that are named by -l count by their size and time. It would not
notice a new header that hides one of these. Commands without an output are passed on.

This file is also the program, of which a process takes 0.03 s: it imports little.
"""

from __future__ import annotations

import marshal
import os
import sys
from _blake2 import blake2b  # hashlib takes 12 ms to import

_SCRIPT = """#!/bin/sh
case " $* " in
  *" -E "*|*" -x "*) ;;
  *" -o "*) exec {python} -IS {module} {folder} {compiler} {identity} "$@";;
esac
exec {compiler} "$@"
"""
_ENVIRONMENT = ("CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX")


def keeping_compiler(options: str, compiler: str | None = None) -> str:
    """A script that calls a compiler, the chosen one by default, with options after all others, so that they win."""
    import subprocess
    from pathlib import Path

    from opwright.toolchain.processor import fingerprint
    from opwright.toolchain.storage.records import digest
    from tests.executables import write_executable
    from tests.quick_compiler import FOLDER, chosen_compiler, quick_compiler

    real = compiler or chosen_compiler() or "g++"
    version = subprocess.run([*real.split(), "--version"], capture_output=True, check=True).stdout
    text = _SCRIPT.format(
        compiler=quick_compiler(options, compiler),
        python=sys.executable,
        module=__file__,
        folder=Path(os.environ[FOLDER]).parent / "libraries",
        identity=digest(f"{version!r} {fingerprint()}")[:16],
    )
    script = Path(os.environ[FOLDER]) / f"keeping-g++-{digest(text)[:12]}"
    return str(script if script.exists() else write_executable(script, text))


def _main(folder: str, compiler: str, identity: str, arguments: list[str]) -> int:
    given = [_content(word) for word in arguments if os.path.isfile(word)]
    if any(b".incbin" in content for content in given):  # which names a file that no compiler lists
        os.execv(compiler, [compiler, *arguments])
    place = arguments.index("-o") + 1
    asked = [_meaning(word) for word in arguments[: place - 1] + arguments[place + 1 :]]
    facts = repr([compiler, identity, asked, _libraries(arguments), [os.environ.get(name) for name in _ENVIRONMENT]])
    key = blake2b(facts.encode(), digest_size=32).hexdigest()
    entry = f"{folder}/{key[:2]}/{key}"
    here = _Here(arguments)
    if (kept := _made_of_what_is_there(f"{entry}/made", here)) is None:
        return _compile(compiler, arguments, entry, here)
    said, made, rule = kept
    _write(arguments[place], made)
    os.chmod(arguments[place], 0o755)
    if "-MF" in arguments:
        _write(_after("-MF", arguments), here.put(rule).encode())
    sys.stderr.write(said)
    return 0


class _Here:
    """Names that differ between two calls of the same meaning: the folder that they are made in, and given files."""

    def __init__(self, arguments: list[str]) -> None:
        self._names = {word: f"{{{place}}}" for place, word in enumerate(arguments) if os.path.isabs(word)}
        self._names[os.getcwd()] = "{here}"

    def take(self, text: str) -> str:
        """The text without them."""
        for name in sorted(self._names, key=len, reverse=True):
            text = text.replace(name, self._names[name])
        return text

    def put(self, text: str) -> str:
        """The text with them again."""
        for name, sign in self._names.items():
            text = text.replace(sign, name)
        return text


def _compile(compiler: str, arguments: list[str], entry: str, here: _Here) -> int:
    import subprocess
    import tempfile

    product = _after("-o", arguments)
    with tempfile.TemporaryDirectory() as beside:
        own = [] if "-MF" in arguments else ["-MD", "-MF", f"{beside}/read.d"]
        done = subprocess.run([compiler, *arguments, *own], stderr=subprocess.PIPE, text=True)
        sys.stderr.write(done.stderr)
        path = _after("-MF", [*arguments, *own])
        if done.returncode == 0 and os.path.isfile(product):
            rule = _content(path).decode() if os.path.isfile(path) else ""  # a linker reads what it is given
            names = rule.replace("\\\n", " ").partition(": ")[2].split()
            read = {here.take(name): _digest(_content(name)) for name in names if name not in arguments}
            os.makedirs(entry, exist_ok=True, mode=0o700)
            begun = f"{entry}/begun-{os.getpid()}"
            _write(begun, marshal.dumps((done.stderr, read, _content(product), here.take(rule))))
            os.replace(begun, f"{entry}/made")
    return done.returncode


def _made_of_what_is_there(kept: str, here: _Here) -> tuple[str, bytes, str] | None:
    """What was printed, made and read, if the files that were read then are the same now."""
    try:
        said, read, made, rule = marshal.loads(_content(kept))
        is_same = all(_digest(_content(here.put(name))) == digest for name, digest in read.items())
    except OSError:
        return None
    return (said, made, rule) if is_same else None


def _libraries(arguments: list[str]) -> list[tuple[str, int, int]]:
    """The size and time of every library that may be meant by -l, of those in folders that are named by -L."""
    folders = [word[2:] for word in arguments if word.startswith("-L")]
    names = [word[2:] for word in arguments if word.startswith("-l")]
    paths = [f"{folder}/lib{name}.{kind}" for folder in folders for name in names for kind in ("so", "a")]
    found = [(path, os.stat(path)) for path in paths if os.path.isfile(path)]
    return [(path, status.st_size, status.st_mtime_ns) for path, status in found]


def _meaning(word: str) -> str:
    """A word of the command line; a file counts by its name and content, not by its folder."""
    if os.path.isfile(word):
        return f"{os.path.basename(word)} {_digest(_content(word))}"
    if word.startswith("-I") and not any(files for *_, files in os.walk(word[2:])):
        return "-I"  # an empty folder, of an environment of this run
    return word.replace(os.getcwd(), "{here}")


def _after(flag: str, arguments: list[str]) -> str:
    return arguments[arguments.index(flag) + 1]


def _write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _digest(content: bytes) -> str:
    """A digest without lines of comment, as emitted sources begin with the name of the file that they come from."""
    if b"\n//" in content or content.startswith(b"//"):
        lines = content.split(b"\n")
        content = b"\n".join(b"" if line.startswith(b"//") else line for line in lines)
    return blake2b(content, digest_size=16).hexdigest()


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:4], sys.argv[4:]))
