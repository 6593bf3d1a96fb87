"""Serving a mutating operator whose arguments hold tensors in containers: each structure has a server of flat ones."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch.utils._pytree import TreeSpec

from opwright.binding.own_errors import runs_reference
from opwright.binding.serving.last_rung import RemembersRung
from opwright.binding.serving.listening import is_heard, tell
from opwright.binding.serving.mutating import MutatingServer
from opwright.tracing.interface.flatten import Leaves, flatten
from opwright.tracing.interface.signature import Signature


class MutatingStructuredServer(RemembersRung):
    """Serves the calls of one operator.

    Args:
        name: The name of the operator.
        reference: The function as written, taking every argument by position.
        signature: Its parameters.
        make: Makes the server of the flat arguments of a structure.
    """

    def __init__(
        self,
        name: str,
        reference: Callable[..., Any],
        signature: Signature,
        make: Callable[[Leaves, TreeSpec], MutatingServer],
    ) -> None:
        super().__init__()
        self._name = name
        self._reference = reference
        self._signature = signature
        self._make = make
        self._servers: dict[Hashable, MutatingServer] = {}

    def serve(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, pinned: bool = False) -> Any:
        """Serve a call; a pinned one raises instead of running the reference."""
        if is_heard():
            return tell(self._name, lambda *a, **k: self.serve(a, k, pinned=pinned), args, kwargs)
        leaves, layout = flatten(self._signature.bind(args, kwargs))
        kind = layout, tuple([isinstance(leaf, torch.Tensor) for leaf in leaves])
        server = self._servers.get(kind) or self._servers.setdefault(kind, self._make(leaves, layout))
        if not server.changes_any:  # the containers are empty
            return self.serve_by_reference(leaves.given)
        result = server.serve(leaves, {}, pinned=pinned)
        self.last_rung = server.last_rung
        return result

    def serve_below_autograd(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Serve a call that records no gradients."""
        with torch.no_grad():
            return self.serve(args, kwargs)

    @runs_reference
    def serve_by_reference(self, args: tuple[Any, ...]) -> Any:
        """Run the function as written."""
        self.last_rung = "composed"
        return self._reference(*args)
