"""Identify executables: compilers that may be missing, broken or slow."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable
from typing import TypeVar

from opwright.toolchain.process.starting import run

PROBE_TIMEOUT_S = 20.0

Candidate = TypeVar("Candidate")
Found = TypeVar("Found")


class Unusable(Exception):
    """Why an executable cannot be used."""


def first_usable(
    candidates: Iterable[Candidate], examine: Callable[[Candidate], Found]
) -> tuple[Found | None, list[str]]:
    """Return the first usable candidate, and why those before it are not."""
    reasons: list[str] = []
    for candidate in candidates:
        try:
            return examine(candidate), reasons
        except Unusable as reason:
            reasons.append(str(reason))
    return None, reasons


def answer(command: tuple[str, ...], *, with_stderr: bool = False) -> str:
    """Run a command and return what it prints.

    Raises:
        Unusable: It cannot run, fails, or takes too long.
    """
    try:
        errors_to = subprocess.STDOUT if with_stderr else subprocess.PIPE
        done = run(command, PROBE_TIMEOUT_S, stdin=subprocess.DEVNULL, stderr=errors_to)
    except OSError as error:
        raise Unusable(f"{command[0]} cannot run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise Unusable(f"{command[0]} did not answer within {PROBE_TIMEOUT_S:g} s") from error
    if done.returncode != 0:
        said = done.stdout if with_stderr else done.stderr
        complaint = next((line for line in said.splitlines() if line.strip()), f"exit status {done.returncode}")
        raise Unusable(f"{command[0]} cannot run: {complaint.strip()}")
    return done.stdout
