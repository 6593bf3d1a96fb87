"""Signatures and annotations as they are written, whether or not their names can be found.

From Python 3.14 on annotations are evaluated when somebody asks for them. One whose name is imported only for type
checkers would raise a `NameError` then, and is a `ForwardRef` here.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

if sys.version_info >= (3, 14):
    from annotationlib import Format, get_annotations

    _AS_WRITTEN: dict[str, Any] = {"annotation_format": Format.FORWARDREF}
else:
    _AS_WRITTEN: dict[str, Any] = {}


def signature_of(function: Callable[..., Any], *, follow_wrapped: bool = True) -> inspect.Signature:
    """The signature of a function; behind decorators, that of the function inside, unless it is not to be followed.

    Raises:
        ValueError: If it has none.
        TypeError: If it is no function.
    """
    return inspect.signature(function, follow_wrapped=follow_wrapped, **_AS_WRITTEN)


def annotations_of(annotated: Callable[..., Any] | type) -> dict[str, Any]:
    """The annotations of a function, or of a class itself without its bases: values, or texts."""
    if sys.version_info >= (3, 14):
        return get_annotations(annotated, format=Format.FORWARDREF)
    return inspect.get_annotations(annotated)
