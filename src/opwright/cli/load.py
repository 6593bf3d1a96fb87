"""load: FILE[:OPERATOR] → what a file of the user's has to be judged, measured or shown."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import all_suffixes
from pathlib import Path
from types import ModuleType
from typing import Any

from opwright.checking.subject import OperatorLike, is_operator
from opwright.errors import FileUnloadable, OperatorNotFound, OpwrightError, Place
from opwright.samples import SampleFactory
from opwright.toolchain.modules import module_of_file


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a file has to be judged; an operator of opwright knows its reference and its samples itself."""

    name: str
    subject: Any
    reference: Callable[..., Any] | None = None
    samples: SampleFactory | None = None


def load_operators(target: str) -> list[OperatorLike]:
    """Run the user's file as a module, with its folder on the path of imports, and collect its operators.

    Args:
        target: "path/to/file.py" for all operators in it, "path/to/file.py:name" for one.

    Raises:
        OperatorNotFound: There is no such file, or no such operator in it.
        FileUnloadable: The file raises.
    """
    file, name = _split(target)
    return _chosen(_values(file), file, name)


def load_subjects(target: str, reference: str, samples: str) -> list[Loaded]:
    """Run the user's file, and collect its operators, or the one callable that is named.

    Args:
        target: As for `load_operators`; the name may be that of any callable.
        reference: What the file calls the function that such a callable stands for.
        samples: What the file calls the samples to judge it by.

    Raises:
        OperatorNotFound: There is no such file, or no such name in it.
        FileUnloadable: The file raises.
    """
    file, name = _split(target)
    values = _values(file)
    named = None if name is None else values.get(name)
    if name is not None and callable(named) and not is_operator(named):
        return [Loaded(name, named, values.get(reference), values.get(samples))]
    return [Loaded(operator.name, operator) for operator in _chosen(values, file, name)]


def _values(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise OperatorNotFound(f"there is no file {file}")
    return vars(_run(file))


def _chosen(values: dict[str, Any], file: Path, name: str | None) -> list[OperatorLike]:
    found = {key: value for key, value in values.items() if is_operator(value)}
    if not found:
        raise OperatorNotFound(
            f"there is no operator in {file}", hint="put @opwright.operator above a function of tensors"
        )
    if name is None:
        return list({id(operator): operator for operator in found.values()}.values())
    if name not in found:
        raise OperatorNotFound(f"there is no operator {name} in {file}", hint=f"it has {', '.join(sorted(found))}")
    return [found[name]]


def _split(target: str) -> tuple[Path, str | None]:
    file, colon, name = target.rpartition(":")
    return (Path(file), name) if colon and name.isidentifier() else (Path(target), None)


def _run(file: Path) -> ModuleType:
    folder = str(file.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = file.stem if file.stem not in sys.modules else f"{file.stem} at {file.resolve()}"
    if not file.name.endswith(tuple(all_suffixes())):
        raise OperatorNotFound(f"{file} is not a Python file")
    try:
        return module_of_file(name, file.resolve())
    except OpwrightError as refusal:
        place = refusal.place or _place(file, refusal)
        raise FileUnloadable(refusal.fact, place=place, hint=refusal.hint) from refusal
    except (Exception, SystemExit) as error:
        raise FileUnloadable(f"{type(error).__name__}: {error}", place=_place(file, error)) from error


def _place(file: Path, error: BaseException) -> Place:
    """Find the last line of the user's file on the way to the error."""
    path = str(file.resolve())
    if isinstance(error, SyntaxError) and error.filename == path:
        return Place(str(file), error.lineno or 1)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return Place(str(file), next((line for line in reversed(lines) if line), 1))
