"""Which rung served the last call of a thread: those that call at once see each their own.

A `threading.local` that is written at each call would take 60 ns, a twentieth of the smallest call. So the hot path
writes nothing while all calls go through it: what is kept is its rung, and the threads whose last call had another.
"""

from __future__ import annotations

from threading import get_ident

from opwright.binding.environment import is_compiling
from opwright.binding.rungs import RungName
from opwright.toolchain.process.forks import Lock

_choosing = Lock()


class RemembersRung:
    """A server of calls that tells what served the last one.

    Attributes:
        usual_rung: What serves the hot path; None as long as nothing does.
        unusual_rungs: What served the last call of threads where that was something else.
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
        if is_compiling():  # a compiler that looks on does not know of threads
            return
        if rung == self.usual_rung:
            self.unusual_rungs.pop(get_ident(), None)
        else:
            self.unusual_rungs[get_ident()] = rung

    def remember_usual(self, rung: RungName) -> None:
        """Remember a call of the hot path; to be called where its rung is not the usual one, or there are others."""
        with _choosing:
            self.usual_rung = self.usual_rung or rung
        self.last_rung = rung
