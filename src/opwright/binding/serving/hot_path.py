"""The way into C++ for calls that servers of flat arguments serve: those with structures, or that change arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.utils._pytree import TreeSpec

from opwright.binding.environment import is_compiling
from opwright.binding.own_errors import is_wanted
from opwright.binding.rungs import RungName
from opwright.binding.serving.last_rung import RemembersRung
from opwright.binding.serving.server import Server
from opwright.binding.structures import NotTold, spec_of
from opwright.binding.tape import LEFT, Entry, Tape
from opwright.toolchain.process.forks import Lock
from opwright.tracing.interface.results import Constant, Made
from opwright.tracing.interface.signature import Signature

_MOST_SERVERS = 32
_UNCHANGED = Constant(None)  # in place of a new value


class HotPath(RemembersRung):
    """A server whose calls are those of servers of flat arguments.

    Args:
        signature: The parameters of its operator.
        changed: Positions of the arguments that the operator changes.
    """

    def __init__(self, signature: Signature, changed: Sequence[int] = ()) -> None:
        super().__init__()
        self._signature = signature
        self._changed = tuple(changed)
        self._servers: dict[Server, TreeSpec | None] = {}
        self._hot: tuple[Entry, RungName | None] | None = None
        self._winding = Lock()

    def _play(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Serve a call in C++; LEFT if it is left to the function, NotImplemented if that does not know it."""
        hot = self._hot
        if hot is None or is_compiling():
            return NotImplemented
        entry, rung = hot
        try:
            result = entry.play(*args, **kwargs)
        except Exception as error:
            if self._changed or is_wanted(error):
                raise
            return NotImplemented  # what it means is found out slowly
        if result is NotImplemented or result is LEFT or rung is None:
            return result
        if self.unusual_rungs or rung is not self.usual_rung:
            self.remember_usual(rung)
        return result

    def _keep_up(self, server: Server, layout: TreeSpec | None) -> None:
        """Go by C++ where a server does that has served a call; its arguments were laid out flat in this way."""
        if server not in self._servers and len(self._servers) < _MOST_SERVERS and _is_told(layout):
            self._servers[server] = layout
        if server in self._servers:
            with self._winding:
                self._wind(server)

    def _wind(self, latest: Server) -> None:
        found = latest.flat
        if found is None:
            return
        rung = found[1] or (self._hot[1] if self._hot else None)
        flats = []
        for server, layout in tuple(self._servers.items()):
            flat, other = server.flat or (None, None)
            tape = flat.tape if flat else None
            if flat and other in (rung, None) and (tape is None or gives_new_values(tape, len(self._changed))):
                flats.append((layout, flat))
        if self._hot is None or self._hot[1] != rung or [*self._hot[0].flats] != flats:
            self._hot = (Entry(self._signature, flats, self._changed), rung) if flats else None


def gives_new_values(tape: Tape, count: int) -> bool:
    """Whether the last `count` members of each result are new values of arguments, or None for one that stays."""
    last = [member for variant in tape.variants for member in variant.plan.result.members[-count:]] if count else []
    return all(isinstance(member, Made) or member == _UNCHANGED for member in last)


def _is_told(layout: TreeSpec | None) -> bool:
    try:
        return layout is None or bool(spec_of(layout))
    except NotTold:
        return False
