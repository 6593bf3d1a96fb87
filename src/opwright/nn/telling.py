"""What serves a module, in words."""

from __future__ import annotations

from collections.abc import Iterable

from opwright.errors import NoKernel, OpwrightError, UndeclaredMutation, UnsupportedReturn, UntraceableReference


def kernels_told(counts: Iterable[tuple[int, ...]]) -> str:
    """How many kernels run, by those of several kinds of calls."""
    forward, backward = [], []
    for first, *second in counts:
        forward.append(first)
        backward.extend(second)
    if not any(forward) and not any(backward):
        return "library calls only"
    return f"kernels: {max(forward)} forward" + (f", {max(backward)} backward" if backward else "")


def waiting_told(is_coming: bool) -> str:
    """Why kernels are not called yet, or not at all."""
    if is_coming:
        return "; as written until what calls them is built, once for each version of PyTorch and Python"
    return "; as written, as what calls them cannot be built here (hint: `opwright doctor` says why)"


def reason_told(refusal: OpwrightError) -> str:
    """A refusal on one line."""
    where = f"{refusal.place}: " if refusal.place else ""
    return f"{where}{refusal.fact}" + (f" (hint: {refusal.hint})" if refusal.hint else "")


def is_of_the_function(refusal: OpwrightError) -> bool:
    """Whether a refusal is about what was to be derived; a machine without a compiler refuses its parts, too."""
    return isinstance(refusal, (NoKernel, UntraceableReference, UndeclaredMutation, UnsupportedReturn))


def to_parts(refusal: OpwrightError) -> str:
    """What serves calls of a module with parts."""
    return "its parts" if is_of_the_function(refusal) else to_function(refusal)


def to_function(refusal: OpwrightError) -> str:
    """What serves calls of a module without parts."""
    return "your function"
