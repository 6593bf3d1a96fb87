"""Cut a Program at reductions over an axis: what is reduced over the processes before the rest can be computed.

mean(x²) over the axis, in a norm: every process has a sum over its part; the sums are added up; the rest follows
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opwright.ir import program as ir
from opwright.ir.contents import reads_of
from opwright.sharding.rules.follow import follow_all
from opwright.sharding.rules.lies import Kind, Lies
from opwright.sharding.rules.sizes import Sizes

_MOST_CUTS = 16


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where a Program is cut.

    Attributes:
        reduced: Buffers that are reduced over the processes, and how.
        scaled: Buffers that are multiplied by (own size / whole size) to a power where they are computed.
        outputs: How the outputs lie then.
    """

    reduced: Mapping[str, Kind]
    scaled: Mapping[str, int]
    outputs: tuple[Lies, ...]


def find_cuts(program: ir.Program, inputs: Mapping[str, Lies], axis: str, sizes: Sizes) -> Cuts | None:
    """Cut where a reduction over the axis is used otherwise than as a sum; None if that does not help."""
    reduced: dict[str, Kind] = {}
    scaled: dict[str, int] = {}
    while True:
        lies = follow_all(program, inputs, axis, sizes, reduced.keys() | scaled.keys())
        outputs = tuple(lies[name] for name in program.outputs)
        if not any(one.kind == "unknown" for one in outputs):
            return Cuts(reduced, scaled, outputs) if reduced else None
        causes = _causes(program, lies)
        if not causes or len(reduced) + len(scaled) >= _MOST_CUTS:
            return None
        origins = _origins(program, lies)
        for cause in causes:
            if lies[cause].kind == "same":
                scaled[cause] = -lies[cause].power
                continue
            for origin in origins[cause]:
                reduced[origin] = lies[origin].kind
                if lies[origin].power:
                    scaled[origin] = -lies[origin].power


def _sources(step: ir.Step) -> list[str]:
    own = {target.name for target in ir.targets_of(step)}
    return [name for name in dict.fromkeys(reads_of(step)) if name not in own]


def _causes(program: ir.Program, lies: Mapping[str, Lies]) -> list[str]:
    """What the first step that fails reads, and cannot use."""
    for step in program.steps:
        sources = _sources(step)
        fails = any(lies[target.name].kind == "unknown" for target in ir.targets_of(step))
        if fails and not any(lies[name].kind == "unknown" for name in sources):
            return [name for name in sources if not lies[name].is_plain]
    return []


def _origins(program: ir.Program, lies: Mapping[str, Lies]) -> dict[str, list[str]]:
    """For each buffer that is a reduction over the axis, the buffers that were reduced first on its way."""
    origins: dict[str, list[str]] = {}
    for step in program.steps:
        for target in ir.targets_of(step):
            kind = lies[target.name].kind
            if kind not in ("same", "unknown"):
                known = [origin for name in _sources(step) if lies[name].kind == kind for origin in origins[name]]
                origins[target.name] = list(dict.fromkeys(known)) or [target.name]
    return origins
