"""A stand-in for `opwright.operator.Operator`: rungs are given as functions."""

from dataclasses import dataclass

import torch

from opwright.errors import RungMissing


@dataclass(frozen=True)
class FakeRung:
    name: str
    available: bool = True
    origin: str = "written"
    reason: str = ""
    devices: tuple[str, ...] = ()


class FakeOperator:
    """Serves calls with the last of its rungs.

    Args:
        reference: The rung "composed".
        rungs: A function for each other rung, or a sentence that says why it is missing.
        served: What each rung says served a call, where it is not the rung itself.
    """

    def __init__(self, reference, samples=None, rungs=None, served=None, overload=None):
        self.name = reference.__name__
        self.reference = reference
        self.samples = samples
        self.overload = overload
        self.last_rung = None
        self._rungs = {"composed": reference, **(rungs or {})}
        self._served = served or {}

    def __call__(self, *args, **kwargs):
        return self.on([name for name, rung in self._rungs.items() if callable(rung)][-1])(*args, **kwargs)

    def on(self, rung):
        function = self._rungs.get(rung)
        if not callable(function):
            raise RungMissing(f"{self.name} has no rung {rung}")

        def pinned(*args, **kwargs):
            result = function(*args, **kwargs)
            self.last_rung = self._served.get(rung, rung)
            return result

        return pinned

    def rungs(self):
        return tuple(
            FakeRung(name) if callable(rung) else FakeRung(name, available=False, reason=rung)
            for name, rung in self._rungs.items()
        )

    def source(self, rung):
        return f"// {rung} of {self.name}\n"

    def explain(self):
        return f"{self.name}: one kernel"


def scale(x, y):
    """Give a small reference to try."""
    return x * torch.sigmoid(y)
