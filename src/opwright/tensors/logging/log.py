"""Logging the calls of a block, for plain tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from opwright.binding.serving.listening import HearsOperators
from opwright.tensors.logging.call import Call, call_of, name_of
from opwright.tensors.logging.noting import is_noted, take_note


@contextmanager
def log(note: Callable[[Call], Any] | None = None) -> Iterator[list[Call]]:
    """Record the calls of torch functions in a block, on this thread.

        with opwright.tensors.log() as calls:
            model(x)

    A function that is made of others is one call, and so is an operator of opwright, whose kernels run as they do
    outside of the block. Questions such as `x.shape` are no calls.

    Args:
        note: Called with each call too, for example `print`.

    Raises:
        TypeError: `note` is no function.

    Yields:
        The calls, which grow while the block runs.
    """
    if note is not None and not callable(note):
        raise TypeError(f"log: {note!r} is no function\nhint: give what is called with each call, such as print")
    calls: list[Call] = []
    with _Log(calls, note):
        yield calls


class _Log(HearsOperators):
    def __init__(self, calls: list[Call], note: Callable[[Call], Any] | None) -> None:
        super().__init__()
        self._calls = calls
        self._note = note

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if is_noted(func):
            self._keep(call_of(name_of(func), args, kwargs))
        return func(*args, **kwargs)

    def hear(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if is_noted(self.hear):
            self._keep(call_of(name, args, kwargs))

    def _keep(self, call: Call) -> None:
        self._calls.append(call)
        if self._note is not None:
            take_note(self._note, call)
