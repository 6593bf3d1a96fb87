"""The rung that served the last call, separately for each thread.

Writing a `threading.local` at each call would take 60 ns, a twentieth of the smallest call. So the hot path writes
nothing while all calls go through it: only its rung is kept, and the threads whose last call used another one.
"""

from __future__ import annotations

from threading import get_ident

from opwright.binding.environment import is_compiling
from opwright.binding.rungs import RungName
from opwright.toolchain.process.forks import Lock

_choosing = Lock()


class RemembersRung:
    """A server that remembers which rung served the last call.

    Attributes:
        usual_rung: The rung of the hot path; None as long as there is none.
        unusual_rungs: The rungs of threads whose last call used another one.
    """

    def __init__(self) -> None:
        self.usual_rung: RungName | None = None
        self.unusual_rungs: dict[int, RungName | None] = {}

    @property
    def last_rung(self) -> RungName | None:
        """The rung that served the last call of this thread; before its first, that of the hot path if there is one."""
        return self.unusual_rungs.get(get_ident(), self.usual_rung)

    @last_rung.setter
    def last_rung(self, rung: RungName | None) -> None:
        if is_compiling():  # a tracing compiler does not know threads
            return
        if rung == self.usual_rung:
            self.unusual_rungs.pop(get_ident(), None)
        else:
            self.unusual_rungs[get_ident()] = rung

    def remember_usual(self, rung: RungName) -> None:
        """Remember a call of the hot path; needed if its rung is not the usual one, or if there are others."""
        with _choosing:
            self.usual_rung = self.usual_rung or rung
        self.last_rung = rung
