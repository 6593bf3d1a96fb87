"""Unexpected errors as refusals: our bugs, a full disk, a lack of memory."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from opwright.errors import Fault, OpwrightError
from opwright.package import PACKAGE

_PACKAGE = PACKAGE
_LONGEST = 300
_OF_THE_MACHINE = (OSError, MemoryError, RecursionError)  # which are not bugs in the line that raises them


def fault_of(error: Exception) -> OpwrightError:
    """The refusal that stands for an error: itself, if it is one, or a Fault; without its traceback."""
    if isinstance(error, OpwrightError):
        return error.again()
    line = None if isinstance(error, _OF_THE_MACHINE) else line_of_ours(error)
    if line is None:
        return Fault(f"its kernels failed with {summary(error)}")
    return Fault(f"its kernels failed with {summary(error)} at {line}", hint="report it, with this function")


@contextmanager
def refusing_faults() -> Iterator[None]:
    """Turn every error that is not a refusal into a Fault."""
    try:
        yield
    except OpwrightError:
        raise
    except Exception as error:
        if comes_from_a_signal(error):
            raise
        raise fault_of(error) from error


def comes_from_a_signal(error: BaseException) -> bool:
    """Whether a signal handler raised an error, such as a timeout, which is meant for the caller."""
    handlers = {getattr(signal.getsignal(number), "__code__", None) for number in signal.valid_signals()} - {None}
    return any(frame.f_code in handlers for frame, _ in traceback.walk_tb(error.__traceback__))


def summary(error: Exception) -> str:
    """The class of an error and the first line of its message."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0][:_LONGEST]}".removesuffix(": ")


def line_of_ours(error: Exception) -> str | None:
    """The line of opwright that raised an error; None if something else did."""
    raised = traceback.extract_tb(error.__traceback__)
    if not raised or not Path(raised[-1].filename).is_relative_to(_PACKAGE):
        return None
    return f"opwright/{Path(raised[-1].filename).relative_to(_PACKAGE)}:{raised[-1].lineno}"
