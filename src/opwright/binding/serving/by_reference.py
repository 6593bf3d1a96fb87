"""Serving calls by the function as written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opwright.binding.own_errors import runs_reference
from opwright.binding.serving.last_rung import RemembersRung
from opwright.binding.transforms.as_written import RunsAsWritten, below_transforms
from opwright.errors import OpwrightError
from opwright.tracing.interface.flatten import Leaves


class ServesByReference(RemembersRung):
    """A server that can run the function as written.

    Args:
        written: The function as written.
        reference: The same, of arguments in order.
        fallback: The same for the original arguments, if these were flattened.
    """

    def __init__(
        self, written: Callable[..., Any], reference: Callable[..., Any], fallback: Callable[..., Any]
    ) -> None:
        super().__init__()
        self._written = written
        self._reference = reference
        self._fallback = fallback
        self._refused = getattr(reference, "refused", lambda _, *given: fallback(*given))

    @runs_reference
    def serve_by_reference(self, args: Sequence[Any], refusal: OpwrightError | None = None) -> Any:
        """Run the function as written; a reference with parts that can be served hears why there are no kernels."""
        self.last_rung = "composed"
        if not isinstance(args, Leaves):
            return self._reference(*args)
        return self._fallback(*args.given) if refusal is None else self._refused(refusal, *args.given)

    def run_instead(
        self, args: Sequence[Any], refusal: OpwrightError | None = None, settle: Callable[[], None] = lambda: None
    ) -> Any:
        """Run the function as written, and then settle; below a transform, leave both to the level of the call.

        Raises:
            RunsAsWritten: If it is called below the level of a transform.
        """
        if below_transforms.is_entered:
            raise RunsAsWritten(settle)
        result = self.serve_by_reference(args, refusal)
        settle()
        return result

    @runs_reference
    def serve_left(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the function as written, of the arguments as they came."""
        if below_transforms.is_entered:
            raise RunsAsWritten
        self.last_rung = "composed"
        return self._fallback(*args.given) if isinstance(args, Leaves) else self._written(*args, **kwargs)
