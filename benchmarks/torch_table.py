"""PyTorch's own test table, every entry that opwright takes, against eager: forward, and forward + backward.

The samples of the table are made of few sizes, which are made larger here. An entry whose largest sample takes eager
less than 30 µs is left out, because a call's own cost would decide.

PYTHONPATH=. python benchmarks/torch_table.py [--json FILE]
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
import warnings
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any

import torch
from scorecard import Options, Row, Scorecard, Target, geometric_mean, medians_us, run_script

from opwright.api.operator import Operator
from opwright.benchmark.stopwatch import Plan, Thunk, interleave
from opwright.errors import FallbackWarning
from tests.opinfo.cases import Case, case_of, operations, samples_of

LEAST_OF_EAGER = 0.95
_SIZES = {"XS": 48, "S": 96, "M": 256, "L": 512}
_LEAST_US, _MOST_ELEMENTS, _SAMPLES = 30.0, 1 << 22, 12
_SECONDS_FOR_ENTRY, _MOST_BYTES = 90, 8 << 30
_NAMES = os.environ.get("OPWRIGHT_BENCH_NAMES", "").split()  # a few entries instead of all


def measure(options: Options) -> list[Scorecard]:
    """Each entry in a process of its own, so that a crash costs only that entry."""
    table = operations()
    for name, module in list(sys.modules.items()):
        if name.startswith("torch.testing._internal"):
            vars(module).update({size: value for size, value in _SIZES.items() if hasattr(module, size)})
    names = _NAMES or sorted(n for n, info in table.items() if torch.float32 in info.dtypes)
    found = {name: _in_a_process(name, options) for name in (names[::40] if options.quick else names)}
    return [_card(f"PyTorch's test table, {what}, float32; µs", what, found) for what in ("forward", "with backward")]


def _card(title: str, what: str, found: Mapping[str, Mapping[str, dict[str, float]]]) -> Scorecard:
    ratios = {name: times[what]["eager"] / times[what]["opwright"] for name, times in found.items() if what in times}
    rows = [Row(name, found[name][what] | {"eager / opwright": ratio}) for name, ratio in ratios.items()]
    rows.sort(key=lambda row: row.figures["eager / opwright"] or 0)
    mean = Row("geometric mean", {"eager / opwright": geometric_mean([*ratios.values()] or [1.0])})
    targets = [Target(f"{name}: eager / opwright", ratio, ">=", LEAST_OF_EAGER) for name, ratio in ratios.items()]
    return Scorecard(title, [*rows, mean], [target for target in targets if not target.met])


def _in_a_process(name: str, options: Options) -> dict[str, dict[str, float]]:
    """The medians of one entry; nothing for one that opwright does not take."""
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sending, name, options))
    process.start()
    sending.close()
    try:
        found: dict[str, dict[str, float]] = receiving.recv()
    except EOFError:
        found = {}
    process.join()
    print(name, {what: round(t["eager"] / t["opwright"], 2) for what, t in found.items()}, file=sys.stderr, flush=True)
    return found


def _send(sending: Connection, name: str, options: Options) -> None:
    signal.alarm(_SECONDS_FOR_ENTRY)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    warnings.simplefilter("error", FallbackWarning)
    found: dict[str, dict[str, float]] = {}
    try:
        case = _largest(name)
        for what, ready in (("forward", _forward), ("with backward", _with_backward)):
            if times := _times(case, ready, options):
                found[what] = times
    except Exception as error:
        print(name, f"{type(error).__name__}: {str(error)[:90]}", file=sys.stderr)
    sending.send(found)


def _largest(name: str) -> Case:
    """The sample with the most elements that is not too large."""
    info = operations()[name]
    samples = list(samples_of(info, torch.float32, _SAMPLES))
    counts = [sum(tensor.numel() for tensor in sample.tensors()) for sample in samples]
    return case_of(info, samples[counts.index(max(count for count in counts if count <= _MOST_ELEMENTS))])


def _times(
    case: Case, ready: Callable[[Case, Callable[..., Any]], Thunk | None], options: Options
) -> dict[str, float] | None:
    eager = ready(case, case.function)
    plan = Plan(fewest_rounds=2, most_rounds=2)
    if eager is None or interleave({"eager": eager}, plan=plan)["eager"].median_us < _LEAST_US:
        return None
    operator = Operator(case.function, name=case.function.__name__, signature=case.signature, freeze=("info", "sample"))
    served = ready(case, operator)
    assert served is not None
    return medians_us({"eager": eager, "opwright": served}, options) | {"as written": operator.last_rung == "composed"}


def _forward(case: Case, way: Callable[..., Any]) -> Thunk:
    def run() -> Any:
        with torch.no_grad():
            return way(*case.tensors)

    return run


def _with_backward(case: Case, way: Callable[..., Any]) -> Thunk | None:
    wanted = [tensor for tensor in case.tensors if tensor.requires_grad]
    outputs = case.function(*case.tensors)
    positions = [position for position, output in enumerate(outputs) if output.requires_grad]
    cotangents = [torch.randn_like(outputs[position]) for position in positions]
    if not wanted or not positions:
        return None

    def run() -> Any:
        made = way(*case.tensors)
        made = made if isinstance(made, tuple) else (made,)
        return torch.autograd.grad([made[p] for p in positions], wanted, cotangents, allow_unused=True)

    return run


if __name__ == "__main__":
    run_script(measure, __doc__)
