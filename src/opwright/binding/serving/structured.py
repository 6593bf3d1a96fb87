"""Serving calls with tensors in containers: every structure of arguments has a flat operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch.utils._pytree import TreeSpec

from opwright.binding.dispatcher.autocast import is_autocast
from opwright.binding.environment import PLAIN_TYPES, is_overheard, is_quiet
from opwright.binding.fallbacks import Fallbacks
from opwright.binding.own_errors import is_for_the_caller, runs_reference
from opwright.binding.serving.hot_path import HotPath
from opwright.binding.serving.listening import is_heard
from opwright.binding.serving.server import Server
from opwright.binding.tape import LEFT
from opwright.binding.variants.kinds import CONSTANT_TYPES, Key, call_of
from opwright.tracing.interface.flatten import Leaves, flatten
from opwright.tracing.interface.signature import Signature
from opwright.tracing.recording.faults import fault_of

_FLAT = frozenset({*PLAIN_TYPES, *CONSTANT_TYPES})


class StructuredServer(HotPath):
    """Serves the calls of one operator.

    Args:
        reference: The function as written, taking every argument by position.
        signature: Its parameters.
        flat: Returns the server of the flat operator for a structure.
        fallbacks: Warned why the reference serves a call.
        serve_cast: Serves calls under autocast by its policy; None if there is none, and the reference serves them.
    """

    def __init__(
        self,
        reference: Callable[..., Any],
        signature: Signature,
        flat: Callable[[Leaves, TreeSpec], Server],
        fallbacks: Fallbacks,
        serve_cast: Callable[[Sequence[Any]], Any] | None = None,
    ) -> None:
        super().__init__(signature)
        self._reference = reference
        self._flat = flat
        self._fallbacks = fallbacks
        self._serve_cast = serve_cast
        self._left: dict[Key, Server] = {}
        self._of_flat: dict[tuple[type, ...], tuple[Server, TreeSpec]] = {}

    def serve(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, pinned: bool = False) -> Any:
        """Serve a call; a pinned one raises instead of running the reference."""
        if self._left and not (kwargs or pinned) and self._leaves(args):
            return self.serve_by_reference(args)
        result = self._play(args, kwargs)
        if result is LEFT and not pinned:
            return self.serve_by_reference(self._signature.bind(args, kwargs))
        if result is not NotImplemented and result is not LEFT:
            return result
        given = self._signature.bind(args, kwargs)
        if self._serve_cast is not None and is_autocast():
            return self._serve_cast(given)
        try:
            return self._serve_flat(given, pinned=pinned)
        except Exception as error:
            if pinned or is_for_the_caller(error):
                raise
            fault = fault_of(error)
        result = self.serve_by_reference(given)
        self._fallbacks.tell(fault)
        return result

    def _serve_flat(self, given: tuple[Any, ...], *, pinned: bool) -> Any:
        if is_overheard() and not is_heard():
            return self.serve_by_reference(given)
        server, layout, arguments = self._server_of(given)
        result = server.serve(arguments, {}, pinned=pinned)
        self._keep_up(server, layout)
        self.last_rung = server.last_rung
        if arguments is given and self.last_rung == "composed" and server.leaves(given):
            self._left[call_of(given)] = server
        return result

    def _leaves(self, args: tuple[Any, ...]) -> bool:
        """Whether the server of these arguments leaves such calls to the function."""
        try:
            server = self._left.get(call_of(args))
        except TypeError:  # an argument cannot be hashed; it is no constant
            return False
        return server is not None and is_quiet() and server.is_unchanged()

    def _server_of(self, given: tuple[Any, ...]) -> tuple[Server, TreeSpec, tuple[Any, ...]]:
        """The server for arguments, their layout, and the arguments it takes; flat ones stay as they are."""
        types = tuple(map(type, given))
        found = self._of_flat.get(types)
        if found is not None:
            return *found, given
        leaves, layout = flatten(given)
        server = self._flat(leaves, layout)
        if _FLAT.issuperset(types):
            self._of_flat[types] = server, layout
        return server, layout, leaves

    def serve_below_autograd(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Serve a call without recording gradients, even if its tensors require them."""
        leaves, layout = flatten(self._signature.bind(args, kwargs))
        server = self._flat(leaves, layout)
        result = server.serve_leaves_below_autograd(leaves)
        self.last_rung = server.last_rung
        return result

    @runs_reference
    def serve_by_reference(self, args: tuple[Any, ...]) -> Any:
        """Run the function as written."""
        self.last_rung = "composed"
        return self._reference(*args)
