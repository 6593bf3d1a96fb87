"""Sweeps some entries in this process and appends what it finds, a line of JSON for each, to a file."""

from __future__ import annotations

import json
import signal
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from opwright.binding.variants.backends import Backend
from opwright.settings import Settings
from tests.opinfo.cases import DTYPES, Unsuitable, case_of, operations, samples_of
from tests.opinfo.judge import Service, serve

_SECONDS_FOR_SAMPLE = 120


def sweep_entry(
    entry: str, samples: int, settings: Settings | None, device: str = "cpu", backend: Backend = "cpp"
) -> dict[str, Any]:
    """Serve the samples of one entry, such as "abs|float32"."""
    name, _, dtype = entry.partition("|")
    info = operations()[name]
    begin, skipped, services, witnesses = time.perf_counter(), Counter[str](), [], []
    for sample in samples_of(info, DTYPES[dtype], samples, device):
        try:
            case = case_of(info, sample)
        except Unsuitable as reason:
            skipped[str(reason)] += 1
            continue
        except Exception as error:
            skipped[f"eager refuses it: {type(error).__name__}"] += 1
            continue
        services.append(serve(case, settings, backend))
        if services[-1].wrong:
            witnesses.append(f"{case.description}: {services[-1].wrong}")
    return {
        "entry": entry,
        "group": group_of(info),
        "skipped": skipped,
        **summary(services),
        "wrong": witnesses,
        "seconds": round(time.perf_counter() - begin, 2),
    }


def summary(services: list[Service]) -> dict[str, Any]:
    """How often each rung served, why not a better one, and how much work is whose."""
    return {
        "served": Counter(service.rung for service in services),
        "reasons": Counter(service.reason for service in services if service.reason),
        "kernels": sum(service.kernels for service in services),
        "calls": sum((service.calls for service in services), Counter()),
    }


def group_of(info: Any) -> str:
    """What torch calls the operation: "pointwise", "reduction", "ufunc" (element-wise without a tag) or "other"."""
    from torch.testing._internal.opinfo.core import BinaryUfuncInfo, ReductionOpInfo, UnaryUfuncInfo

    packet = getattr(torch.ops.aten, info.name.split(".")[-1], None)
    tags = {tag for name in (packet.overloads() if packet else ()) for tag in getattr(packet, name).tags}
    if isinstance(info, ReductionOpInfo) or torch.Tag.reduction in tags:
        return "reduction"
    if torch.Tag.pointwise in tags:
        return "pointwise"
    return "ufunc" if isinstance(info, UnaryUfuncInfo | BinaryUfuncInfo) else "other"


def main(arguments: list[str]) -> None:
    """Take a file, a number of samples, a settings string of JSON and the entries."""
    file, samples, chosen, *entries = arguments
    options = json.loads(chosen)
    settings = (
        Settings(Path(options["cache"]), compiler=options["compiler"], notify=False, tape="now") if options else None
    )
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for entry in entries:
        signal.alarm(_SECONDS_FOR_SAMPLE * int(samples))  # ends this process; who started it records the entry as lost
        record = sweep_entry(entry, int(samples), settings)
        signal.alarm(0)
        with Path(file).open("a") as lines:
            lines.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
