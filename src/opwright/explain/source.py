"""The emitted sources of an operator, formatted for readers."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from opwright.binding.rungs import RUNGS, RungName
from opwright.errors import RungMissing
from opwright.explain.format_cpp import format_cpp
from opwright.explain.origin import place_from_here, source_command
from opwright.version import VERSION

if TYPE_CHECKING:
    from opwright.operators.base import BaseOperator


def source_text(operator: BaseOperator, rung: RungName) -> str:
    """Return the source of a rung: the handwritten one, or else the one emitted for the first sample.

    Args:
        operator: An operator; handwritten rungs and the rung "composed" need no samples.
        rung: "composed", "function", "cpp" or "cuda".

    Raises:
        SamplesMissing: If the operator has no samples, and was not called.
        NoKernel: If nothing can be derived for the first sample.
        RungMissing: If the rung has no source.
    """
    written = operator._ladder.written(rung)
    if written is not None:
        return written
    match rung:
        case "composed":
            return _own_source(operator)
        case "function":
            return operator.function_source()
        case "cpp":
            return _cpp(operator)
        case "cuda":
            return _cuda(operator)
        case _:
            raise RungMissing(f"there is no rung '{rung}'", hint=f"the rungs are {', '.join(RUNGS)}")


def _own_source(operator: BaseOperator) -> str:
    try:
        return inspect.getsource(inspect.unwrap(operator.reference))
    except (OSError, TypeError) as error:
        name = operator.reference.__name__
        raise RungMissing(f"the source of {name} cannot be read: {error}", hint="define it in a file") from error


def _cpp(operator: BaseOperator) -> str:
    derivation = operator.derivation()
    passages = {"forward": derivation.plan.forward}
    if derivation.plan.backward is not None:
        passages["backward"] = derivation.plan.backward
    return "\n".join(_header(operator, passage) + _without_header(source.text) for passage, source in passages.items())


def _cuda(operator: BaseOperator) -> str:
    parts = []
    for passage, shown in zip(("forward", "backward"), operator.derivation().cuda_sources(), strict=False):
        parts.append(_header(operator, passage, "cuda"))
        if shown.device:
            parts += ["// Its kernels, for the device:\n", _without_header(shown.device)]
        parts += ["// Its launcher, for the host:\n", _without_header(shown.host)]
    return "\n".join(parts)


def _without_header(text: str) -> str:
    """A built source without its header comment, which the one here replaces: a built source names no folders."""
    return format_cpp(text[text.index("#include") :])


def _header(operator: BaseOperator, passage: str, rung: RungName = "cpp") -> str:
    name = operator.name.partition("::")[2]
    origin = f"{operator.reference.__qualname__} at {place_from_here(operator)}"
    line = f"// {name}, {passage}. Written by opwright {VERSION} from {origin}"
    command = source_command(operator, rung)
    return f"{line}; see it again with\n//   {command}\n" if command else f"{line}.\n"
