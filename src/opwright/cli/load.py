"""load: a target on the command line → operators.

target ::= place [":" name]
place  ::= a Python file | a module that can be imported from here
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.machinery import all_suffixes
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from opwright.api.operator import Operator
from opwright.checking.subject import is_operator
from opwright.errors import FileUnloadable, OperatorNotFound, OpwrightError, Place, SamplesMissing
from opwright.optim import DerivedOptimizer
from opwright.samples import SampleFactory
from opwright.toolchain.modules import module_of_file


@dataclass(frozen=True, slots=True)
class Loaded:
    """A callable of a file to test; an operator of opwright has its own reference and samples."""

    name: str
    subject: Any
    reference: Callable[..., Any] | None = None
    samples: SampleFactory | None = None


def load_operators(target: str) -> list[Operator]:
    """Import the user's file or module, and collect its operators.

    The folder of a file, or for a module the current folder, is added to the import path.

    Args:
        target: "path/to/file.py" or "package.module" for all operators in it, or with ":name" appended for one.

    Raises:
        OperatorNotFound: There is no such file or module, or no such operator in it.
        FileUnloadable: It raises.
    """
    place, name = _split(target)
    return _chosen(_values(place), place, name)


def load_shipped(target: str) -> list[Any]:
    """Import the user's file or module, and collect its operators and the optimizers that it defines.

    Args:
        target: As for `load_operators`; an optimizer may also be one of `opwright.optim`, or an object, if it is named.

    Raises:
        OperatorNotFound: There is no such file or module, or nothing of that kind in it.
        FileUnloadable: It raises.
    """
    place, name = _split(target)
    values = _values(place)

    def is_shipped(value: Any) -> bool:
        is_class = isinstance(value, type) and issubclass(value, DerivedOptimizer)
        if name is not None:
            return is_class or isinstance(value, DerivedOptimizer)
        return is_class and value.__module__ == values["__name__"]

    return _chosen(values, place, name, is_shipped)


def load_subjects(target: str, reference: str, samples: str) -> list[Loaded]:
    """Import the user's file or module, and collect its operators, or the one callable with the given name.

    Args:
        target: As for `load_operators`; the name may be that of any callable.
        reference: The name, in the file, of the reference of such a callable.
        samples: The name, in the file, of its samples.

    Raises:
        OperatorNotFound: There is no such file or module, or no such name in it.
        FileUnloadable: It raises.
    """
    place, name = _split(target)
    values = _values(place)
    named = None if name is None else values.get(name)
    if name is not None and callable(named) and not is_operator(named):
        return [Loaded(name, named, values.get(reference), values.get(samples))]
    return [Loaded(operator.name, operator) for operator in _chosen(values, place, name)]


def load_value(target: str) -> tuple[dict[str, Any], str]:
    """Import the user's file or module; return all that it defines, and the name in it that the target asks for.

    Args:
        target: "path/to/file.py:NAME" or "package.module:NAME".

    Raises:
        OperatorNotFound: There is no such file or module, or no such name in it.
        FileUnloadable: It raises.
    """
    place, name = _split(target)
    if name is None:
        raise OperatorNotFound(f"{target} names no model", hint=f"write {target}:NAME")
    values = _values(place)
    if name not in values:
        raise OperatorNotFound(f"there is no {name} in {place}", hint="name a module or a function of the file")
    return values, name


def load_type(target: str, samples: str) -> tuple[type, list[Any]]:
    """Import the user's file or module, and find a type in it, and objects of the type.

    Args:
        target: "path/to/file.py:TYPE" or "package.module:TYPE".
        samples: The name, in the file, of a list of objects, or of a function without arguments that makes it;
            objects of other types in it are left out.

    Raises:
        OperatorNotFound: There is no such file or module, or no such type in it.
        SamplesMissing: There is no object of the type.
        FileUnloadable: The file, or the function that makes the objects, raises.
    """
    place, name = _split(target)
    if name is None:
        raise OperatorNotFound(f"{target} names no type", hint="write FILE:TYPE")
    values = _values(place)
    type_ = values.get(name)
    if not isinstance(type_, type):
        raise OperatorNotFound(f"there is no type {name} in {place}", hint="write FILE:TYPE, with a class of the file")
    made = values.get(samples, ())
    if callable(made):
        with _said_with_its_line(Path(place).resolve()):
            made = made()
    objects = [each for each in made if isinstance(each, type_)]
    if not objects:
        raise SamplesMissing(
            f"{place} has no objects of {name} in {samples}",
            hint=f"write {samples} = [{name}(...)], or a function {samples}() that returns such a list",
        )
    return type_, objects


def _split(target: str) -> tuple[str, str | None]:
    place, colon, name = target.rpartition(":")
    return (place, name) if colon and name.isidentifier() else (target, None)


def _values(place: str) -> dict[str, Any]:
    if Path(place).is_file():
        return vars(_run(Path(place)))
    if place.endswith(".py") or not all(part.isidentifier() for part in place.split(".")):
        raise OperatorNotFound(f"there is no file {place}")
    return vars(_imported(place))


def _chosen(
    values: dict[str, Any], place: str, name: str | None, too: Callable[[Any], bool] = lambda _: False
) -> list[Any]:
    """The operators, and what else counts."""
    found: dict[str, Any] = {key: value for key, value in values.items() if is_operator(value) or too(value)}
    if not found:
        raise OperatorNotFound(
            f"there is no operator in {place}", hint="put @opwright.operator above a function of tensors"
        )
    if name is None:
        return list({id(operator): operator for operator in found.values()}.values())
    if name not in found:
        raise OperatorNotFound(f"there is no operator {name} in {place}", hint=f"it has {', '.join(sorted(found))}")
    return [found[name]]


def _run(file: Path) -> ModuleType:
    _search(file.resolve().parent)
    name = file.stem if file.stem not in sys.modules else f"{file.stem} at {file.resolve()}"
    if not file.name.endswith(tuple(all_suffixes())):
        raise OperatorNotFound(f"{file} is not a Python file")
    with _said_with_its_line(file.resolve()):
        return module_of_file(name, file.resolve())


def _imported(name: str) -> ModuleType:
    _search(Path.cwd())
    spec = find_spec(name.partition(".")[0])
    if spec is None:
        raise OperatorNotFound(f"there is no file and no module {name}", hint="write FILE:NAME or package.module:NAME")
    source = Path(spec.origin or name).resolve()
    with _said_with_its_line(source.parent if spec.submodule_search_locations else source):
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            if error.name is not None and name.startswith(error.name):
                raise OperatorNotFound(f"there is no module {error.name}") from None
            raise


def _search(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


@contextmanager
def _said_with_its_line(source: Path) -> Iterator[None]:
    """Turn an exception from the user's file or package into a refusal that names its line."""
    try:
        yield
    except OperatorNotFound:
        raise
    except OpwrightError as refusal:
        place = refusal.place or _place(source, refusal)
        raise FileUnloadable(refusal.fact, place=place, hint=refusal.hint) from refusal
    except (Exception, SystemExit) as error:
        raise FileUnloadable(f"{type(error).__name__}: {error}", place=_place(source, error)) from error


def _place(source: Path, error: BaseException) -> Place:
    """Find the last line of the user's own code in the traceback."""
    lines = [(frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        lines.append((error.filename, error.lineno or 1))
    file, line = next((each for each in reversed(lines) if Path(each[0]).is_relative_to(source)), (str(source), 0))
    return Place(os.path.relpath(file) if Path(file).is_relative_to(Path.cwd()) else file, line)
