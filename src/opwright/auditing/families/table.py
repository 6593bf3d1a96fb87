"""table: the families in the order of reports, and their rows."""

from __future__ import annotations

from opwright.auditing.families import (
    autocast,
    autograd,
    batching,
    compilation,
    concurrency,
    copies,
    exporting,
    fake,
    forward_mode,
    functional,
    hooks,
    memory,
    numerical,
    subclasses,
)
from opwright.auditing.judge import Judge

FAMILIES: dict[str, tuple[Judge, ...]] = {
    "autograd": autograd.JUDGES,
    "numerical derivatives": numerical.JUDGES,
    "hooks": hooks.JUDGES,
    "torch.func": functional.JUDGES,
    "vmap": batching.JUDGES,
    "forward mode": forward_mode.JUDGES,
    "torch.compile": compilation.JUDGES,
    "torch.export": exporting.JUDGES,
    "fake and meta": fake.JUDGES,
    "autocast": autocast.JUDGES,
    "memory tools": memory.JUDGES,
    "subclasses and modes": subclasses.JUDGES,
    "copies": copies.JUDGES,
    "many at once": concurrency.JUDGES,
}
