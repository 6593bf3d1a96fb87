"""torch.compile: the operator inside a graph that is compiled as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch._dynamo import compiled_autograd
from torch._dynamo.backends.registry import lookup_backend

from opwright.auditing.case import Case
from opwright.auditing.families.autograd import gradients
from opwright.auditing.judge import Judge
from opwright.auditing.witness import Seen
from opwright.checking.finding import Fault, Skipped
from opwright.errors import CompilerMissing
from opwright.settings import Settings
from opwright.toolchain.compiler import find_compiler

_MOST_COMPILATIONS = 2  # one for the first sizes, and one for all others


def forward(case: Case) -> Seen:
    """Call it."""
    return {"output": case(*case.inputs)}


def in_each_size(case: Case) -> Seen:
    """Call it in several sizes."""
    if len(case.sizes) < 2:
        raise Skipped("the samples have one size only", hint="give samples= several sizes")
    return {f"output with {sample.name}": replace(case, sample=sample).outputs for sample in case.sizes}


def compiled(experiment: Callable[[Case], Seen], case: Case, *, dynamic: bool | None = None) -> Seen:
    """Run an experiment with the compiled function."""
    with _compiler(case, dynamic) as (compiled_case, _):
        return experiment(compiled_case)


def compiled_once_or_twice(case: Case) -> Seen:
    """Train in several sizes and count the graphs that are compiled."""
    with _compiler(case, None) as (compiled_case, graphs):
        seen = in_each_size(compiled_case)
    if len(graphs) > _MOST_COMPILATIONS:
        raise Fault(f"{len(graphs)} compilations for {len(case.sizes)} sizes, expected {_MOST_COMPILATIONS} at most")
    return seen


def backward_compiled(case: Case) -> Seen:
    """Run the function uncompiled and let compiled autograd compile its backward pass, perhaps as several graphs."""
    torch._dynamo.reset()
    try:
        with compiled_autograd._enable(torch.compile(backend=_backend(case))):
            return gradients(case)
    finally:
        torch._dynamo.reset()


@contextmanager
def _compiler(case: Case, dynamic: bool | None) -> Iterator[tuple[Case, list[Any]]]:
    """Yield the case with its function compiled as one graph, and the list that compiled graphs are added to."""
    function, backend, graphs = case.function, lookup_backend(_backend(case)), []

    def called(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    def noted(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        graphs.append(graph)
        return backend(graph, inputs)

    torch._dynamo.reset()
    try:
        yield replace(case, function=torch.compile(called, fullgraph=True, dynamic=dynamic, backend=noted)), graphs
    finally:
        torch._dynamo.reset()


def _backend(case: Case) -> str:
    if case.options.quick:
        return "aot_eager"
    try:
        find_compiler(Settings.from_environment())
    except CompilerMissing:
        return "aot_eager"
    return "inductor"


JUDGES = (
    Judge("forward", partial(compiled, forward), expected=forward, differentiates=False),
    Judge("training step", partial(compiled, gradients), expected=gradients),
    Judge("compiled autograd", backward_compiled, expected=gradients),
    Judge("dynamic sizes", partial(compiled, in_each_size, dynamic=True), expected=in_each_size, differentiates=False),
    Judge("recompilations", compiled_once_or_twice, expected=in_each_size, differentiates=False),
)
